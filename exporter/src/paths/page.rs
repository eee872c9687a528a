//! `/`: a page for people. It is one file without outside assets, made from `exporter/page` when
//! the crate is built. Its numbers come from `/stats`, `/ctl` and `/doctor`.
//!
//! The file tells nothing about the process, so it needs no token. The page asks for the token, and
//! sends it with what it reads and writes.
use crate::answer::{Answer, body};
use crate::asked::Asked;
use crate::context::Context;
use crate::negotiate::{elements, joined, likes_gzip};
use bytes::Bytes;
use http_body_util::Full;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

include!(concat!(env!("OUT_DIR"), "/page_constants.rs"));

const PLAIN: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page.html.gz"));

/// Answers `GET /`.
pub(crate) fn page(_: &Context, asked: &Asked) -> Answer {
    let mut answer = if is_known(asked.headers()) {
        let mut answer = Answer::new(Full::default());
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    } else if likes_gzip(asked.headers()) {
        let mut answer = body(HTML, Bytes::from_static(PACKED));
        answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        answer
    } else {
        body(HTML, PLAIN)
    };
    for (name, value) in fixed_headers() {
        answer.headers_mut().insert(name, value);
    }
    if let Ok(policy) = HeaderValue::from_str(&policy()) {
        answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

const HTML: &str = "text/html; charset=utf-8";

fn fixed_headers() -> [(HeaderName, HeaderValue); 7] {
    [
        // The browser asks each time whether it has the newest version, and gets 304 if it has.
        (header::CACHE_CONTROL, "no-cache"),
        (header::ETAG, ETAG),
        (header::VARY, "accept-encoding"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)))
}

/// Returns the content security policy: only this script and this style run, only this exporter is
/// asked, no page frames this one, and no text of the process is taken for HTML.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src '{SCRIPT_HASH}'; style-src '{STYLE_HASH}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Whether the client has this version of the page.
fn is_known(headers: &HeaderMap) -> bool {
    elements(&joined(headers, header::IF_NONE_MATCH))
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == ETAG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Linked;
    use crate::routes;
    use crate::settings::Settings;
    use http_body_util::BodyExt;
    use rquickjs::{CatchResultExt, CaughtError, Ctx, Module, Runtime};
    use std::io::Read;

    fn asked(headers: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, Bytes) {
        let mut request = hyper::Request::new(Bytes::new());
        for (name, value) in headers {
            request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        }
        let context = Context::new(&Linked, Settings::default(), routes::names());
        let (head, body) = page(&context, &request).into_parts();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(body.collect()).unwrap().to_bytes();
        (head.status, head.headers, body)
    }

    #[test]
    fn it_is_small_and_needs_nothing_from_elsewhere() {
        assert!(PLAIN.len() < 100_000 && PACKED.len() < 30_000, "{} {}", PLAIN.len(), PACKED.len());
        let outside = PLAIN.replace("http://www.w3.org/2000/svg", "");
        for sign in ["http:", "https:", "//cdn", "@import", "src=", "innerHTML", "eval("] {
            assert!(!outside.contains(sign), "{sign}");
        }
        assert!(!PLAIN.contains("/*STYLE*/") && !PLAIN.contains("/*SCRIPT*/"));
    }

    /// Parses a script as a module, as a browser does. Returns the error with its line.
    fn parsed(script: &str) -> Result<(), String> {
        let declare = |ctx: Ctx<'_>| {
            let declared = Module::declare(ctx.clone(), "script", script).catch(&ctx);
            declared.map(|_| ()).map_err(|error| described(&error, script))
        };
        rquickjs::Context::full(&Runtime::new().unwrap()).unwrap().with(declare)
    }

    fn described(error: &CaughtError<'_>, script: &str) -> String {
        let CaughtError::Exception(exception) = error else { return error.to_string() };
        let stack = exception.stack().unwrap_or_default();
        let number = stack.split(':').nth(1).and_then(|number| number.parse::<usize>().ok());
        let line = script.lines().nth(number.unwrap_or_default().saturating_sub(1));
        format!("{}: {}", exception.message().unwrap_or_default(), line.unwrap_or_default())
    }

    #[test]
    fn its_script_has_no_errors_of_syntax_and_no_two_things_of_one_name() {
        let (_, rest) = PLAIN.split_once("<script type=\"module\">").unwrap();
        let (script, _) = rest.split_once("</script>").unwrap();
        assert_eq!(parsed(script), Ok(()));
        for (line, why) in [
            ("function refresh() {}", "invalid redefinition of global identifier in module code"),
            ("const token = 1;", "invalid redefinition of global identifier"),
            ("const one = 1);", "expecting ';'"),
        ] {
            let wrong = parsed(&format!("{script}{line}\n")).unwrap_err();
            assert_eq!(wrong, format!("{why}: {line}"));
        }
    }

    #[test]
    fn its_headers_let_it_do_nothing_else() {
        let (status, headers, body) = asked(&[]);
        assert_eq!((status, body.as_ref()), (StatusCode::OK, PLAIN.as_bytes()));
        let expected = format!(
            "default-src 'none'; script-src '{SCRIPT_HASH}'; style-src '{STYLE_HASH}'; \
             connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        );
        assert_eq!(headers["content-security-policy"], expected);
        assert_eq!(headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
        assert_eq!(headers["cache-control"], "no-cache");
        assert_eq!(headers["vary"], "accept-encoding");
        assert!(SCRIPT_HASH.len() == 51 && STYLE_HASH.len() == 51 && SCRIPT_HASH != STYLE_HASH);
    }

    #[test]
    fn gzip_is_the_same_page() {
        for (encodings, packed) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP ; q=0.5", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("gzip;q=0.000", false),
            ("gzip;q=x", false),
            ("deflate;Q=1, gzip; Q=0", false),
            ("x-gzip", true),
            ("gzip;q=0.1, identity", false),
            ("identity", false),
            ("", false),
        ] {
            let (_, headers, body) = asked(&[(header::ACCEPT_ENCODING, encodings)]);
            assert_eq!(headers.contains_key("content-encoding"), packed, "{encodings}");
            assert_eq!(body.as_ref() == PLAIN.as_bytes(), !packed, "{encodings}");
        }
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(PACKED).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, PLAIN);
    }

    #[test]
    fn who_has_it_is_told_so() {
        for (tags, known) in [
            (ETAG.to_string(), true),
            (format!("W/{ETAG}"), true),
            (format!("\"x\", {ETAG}"), true),
            ("*".into(), true),
            ("\"x\"".into(), false),
            (format!("\"a, {}, b\"", ETAG.trim_matches('"')), false),
        ] {
            let (status, headers, body) = asked(&[(header::IF_NONE_MATCH, &tags)]);
            assert_eq!(status == StatusCode::NOT_MODIFIED, known, "{tags}");
            assert_eq!(body.is_empty(), known, "{tags}");
            assert_eq!(headers["etag"], ETAG);
        }
    }
}
