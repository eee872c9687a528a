//! What a client accepts: media types and encodings with their q-values. Source: RFC 9110, 12.4.2,
//! 12.5.1, 12.5.3.
use hyper::HeaderMap;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, HeaderName};

/// Returns the place of the media type that a client likes best, and of equals the first. A version
/// that the client names must be that of the offer. Other parameters do not count. A client that
/// names nothing that fits gets the first offer. Returns `None` if all were refused by `q=0`.
pub(crate) fn choose(headers: &HeaderMap, offers: &[&str]) -> Option<usize> {
    let accept = joined(headers, ACCEPT);
    let ranges: Vec<Range<'_>> = elements(&accept).filter_map(Range::parse).collect();
    let offers = offers.iter().map(|offer| Range::parse(offer));
    let liked: Vec<Option<f32>> =
        offers.map(|offer| offer.and_then(|offer| quality(&ranges, &offer))).collect();
    let best = liked.iter().flatten().copied().fold(0.0, f32::max);
    if best > 0.0 {
        return liked.iter().position(|quality| *quality == Some(best));
    }
    // A type that the client does not name is not refused.
    liked.iter().position(Option::is_none)
}

/// Whether a client accepts gzip, and likes it at least as much as an unchanged body.
pub(crate) fn likes_gzip(headers: &HeaderMap) -> bool {
    let accept = joined(headers, ACCEPT_ENCODING);
    let mut codings = Vec::new();
    for element in elements(&accept) {
        let mut parts = element.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        codings.extend(q_value(parts).map(|q| (name, q)));
    }
    let of = |wanted: &[&str]| {
        codings.iter().find(|(name, _)| wanted.contains(&name.as_str())).map(|(_, q)| *q)
    };
    let any = of(&["*"]);
    let gzip = of(&["gzip", "x-gzip"]).or(any).unwrap_or(0.0);
    // A client that does not name `identity` takes an unchanged body as a last resort.
    let identity = of(&["identity"]).or(any.filter(|any| *any == 0.0)).unwrap_or(f32::MIN_POSITIVE);
    gzip > 0.0 && gzip >= identity
}

/// Joins all values of a header that holds a list.
pub(crate) fn joined(headers: &HeaderMap, name: HeaderName) -> String {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

/// Returns the elements of a list. A comma between quotes is text.
pub(crate) fn elements(list: &str) -> impl Iterator<Item = &str> {
    split_unquoted(list, ',').map(str::trim).filter(|element| !element.is_empty())
}

fn split_unquoted(text: &str, at: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |letter| {
        let was_escaped = escaped;
        escaped = quoted && letter == '\\' && !was_escaped;
        if letter == '"' && !was_escaped {
            quoted = !quoted;
        }
        letter == at && !quoted
    })
}

/// A media range that a client accepts: a type, or all types of a kind.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    version: Option<&'a str>,
    q: f32,
}

impl<'a> Range<'a> {
    /// Returns `None` if the element is not a media range.
    fn parse(element: &'a str) -> Option<Range<'a>> {
        let mut parts = split_unquoted(element, ';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let parameters: Vec<&str> = parts.collect();
        let version = parameters.iter().find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("version").then(|| value.trim().trim_matches('"'))
        });
        let q = q_value(parameters.into_iter())?;
        Some(Range { kind: kind.trim(), subtype: subtype.trim(), version, q })
    }

    /// Returns how closely the range matches an offer. 0 is no match, and more is closer.
    fn closeness(&self, offer: &Range<'_>) -> u8 {
        let is_kind = self.kind.eq_ignore_ascii_case(offer.kind);
        let is_subtype = self.subtype.eq_ignore_ascii_case(offer.subtype);
        match (self.kind, self.subtype) {
            ("*", "*") => 1,
            (_, "*") if is_kind => 2,
            _ if is_kind && is_subtype => match self.version {
                None => 3,
                Some(_) if offer.version.is_none() => 3,
                version if version == offer.version => 4,
                Some(_) => 0,
            },
            _ => 0,
        }
    }
}

/// Returns how much a client likes an offer, by the closest range, or `None` if no range matches.
fn quality(ranges: &[Range<'_>], offer: &Range<'_>) -> Option<f32> {
    let close = ranges.iter().map(|range| (range.closeness(offer), range.q));
    let close = close.filter(|(closeness, _)| *closeness > 0);
    // Of equally close ranges, the one with the highest weight counts.
    close.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(_, q)| q)
}

/// Returns the weight among parameters, 1 if there is none, or `None` if it is not a weight.
fn q_value<'a>(mut parameters: impl Iterator<Item = &'a str>) -> Option<f32> {
    let q = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    let Some(q) = q else { return Some(1.0) };
    let is_weight = q.len() <= 5 && q.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    q.parse().ok().filter(|q| is_weight && (0.0..=1.0).contains(q))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    const OFFERS: &[&str] = &[
        "text/plain; version=0.0.4; charset=utf-8",
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    ];

    fn chosen(accept: &[&'static str]) -> Option<usize> {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(ACCEPT, HeaderValue::from_static(value));
        }
        choose(&headers, OFFERS)
    }

    const TEXT: Option<usize> = Some(0);
    const OPEN: Option<usize> = Some(1);

    #[test]
    fn types_by_their_weights() {
        let prometheus_2 = "application/openmetrics-text;version=1.0.0,\
                            application/openmetrics-text;version=0.0.1;q=0.75,\
                            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                            application/openmetrics-text;version=0.0.1;q=0.5,\
                            text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, expected) in [
            ("", TEXT),
            ("*/*", TEXT),
            ("text/plain", TEXT),
            ("TEXT/Plain; Version=0.0.4", TEXT),
            ("text/*", TEXT),
            ("application/*", OPEN),
            ("application/openmetrics-text", OPEN),
            ("application/openmetrics-text; version=1.0.0; charset=utf-8", OPEN),
            ("application/openmetrics-text; version=\"1.0.0\"", OPEN),
            ("application/openmetrics-text;version=0.0.1", TEXT),
            ("application/openmetrics-text;version=2.0.0, text/plain;q=0.1", TEXT),
            ("application/openmetrics-text;q=0.5, text/plain;q=0.4", OPEN),
            ("application/openmetrics-text;q=0.4, text/plain;q=0.5", TEXT),
            ("application/openmetrics-text;q=0.40, text/plain;q=0.4", TEXT),
            ("application/openmetrics-text, */*;q=0.1", OPEN),
            ("application/openmetrics-text;q=0, */*", TEXT),
            ("text/plain;q=0, */*;q=0.1", OPEN),
            ("text/plain;q=0", OPEN),
            ("text/plain;q=0.000, application/*;q=0", None),
            ("*/*;q=0", None),
            ("application/json", TEXT),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", TEXT),
            ("text/plain;q=nonsense, application/openmetrics-text;q=0.1", OPEN),
            ("text/plain;q=2, application/openmetrics-text;q=0.1", OPEN),
            ("text/plain;q=-1, application/openmetrics-text;q=0.1", OPEN),
            ("text/plain;q=1e-9, application/openmetrics-text;q=0.1", OPEN),
            ("text/plain;x=\"a,b;q=0\", application/openmetrics-text;q=0.9", TEXT),
            (prometheus_2, OPEN),
            (prometheus_3, OPEN),
            (";;;,,/,text", TEXT),
        ] {
            assert_eq!(chosen(&[accept]), expected, "{accept}");
        }
        assert_eq!(chosen(&["text/plain;q=0.1", "application/openmetrics-text;q=0.2"]), OPEN);
        assert_eq!(chosen(&[]), TEXT);
    }

    #[test]
    fn json_and_text() {
        let offers = ["text/plain; charset=utf-8", "application/json"];
        for (accept, expected) in [
            ("*/*", TEXT),
            ("APPLICATION/JSON", Some(1)),
            ("text/plain;q=0.5, application/json;q=0.6", Some(1)),
            ("text/plain;q=0.6, application/json;q=0.5", TEXT),
            ("application/*", Some(1)),
            ("application/json;q=0, */*;q=0.1", TEXT),
            ("text/*;q=0.3, text/plain;q=0.1, application/json;q=0.2", Some(1)),
            ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", TEXT),
            ("image/png", TEXT),
            (",", TEXT),
            ("*/*;q=2", TEXT),
            ("*/*;q=x", TEXT),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(choose(&headers, &offers), expected, "{accept}");
        }
    }

    #[test]
    fn gzip_by_its_weight() {
        let likes = |accept: &'static [&'static str]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            likes_gzip(&headers)
        };
        for accept in [
            &["gzip"][..],
            &["GZIP"],
            &["x-gzip"],
            &["*"],
            &["deflate, gzip;q=0.5"],
            &["gzip;q=0.001"],
            &["gzip, identity"],
            &["gzip, identity;q=0.5"],
            &["br;q=1.0, gzip;q=0.8, *;q=0.1"],
            &["identity;q=0, gzip;q=0.1"],
            &["deflate", "gzip"],
        ] {
            assert!(likes(accept), "{accept:?}");
        }
        for accept in [
            &[][..],
            &[""],
            &["identity"],
            &["deflate, br"],
            &["gzip;q=0"],
            &["gzip; q=0.000"],
            &["gzip;q=0, *"],
            &["*;q=0"],
            &["gzip;q=0.5, identity"],
            &["gzip;q=2"],
            &["gzipped"],
        ] {
            assert!(!likes(accept), "{accept:?}");
        }
    }
}
