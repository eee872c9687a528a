//! Every refusal, with its text.
use super::*;
use crate::token::TokenFile;
use hyper::Request;
use std::os::unix::fs::OpenOptionsExt;

fn head(method: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri("/stats");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn says(refused: Result<(), Refusal>) -> String {
    match refused {
        Ok(()) => "ok".into(),
        Err(refusal) => format!("{} {}", refusal.status.as_u16(), refusal.reason),
    }
}

fn known(host: &str) -> bool {
    let settings = Settings { hosts: vec!["service.internal".into()], ..Settings::default() };
    says(admit(&settings, Peer::Tcp, &head("GET", &[("host", host)]))) == "ok"
}

#[test]
fn hosts_are_addresses_and_known_names() {
    for host in ["127.0.0.1", "127.0.0.1:9464", "10.1.2.3:80", "[::1]", "[::1]:9464", "localhost"] {
        assert!(known(host), "{host}");
    }
    for host in ["LOCALHOST:1", "service.internal", "Service.Internal:9464"] {
        assert!(known(host), "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", ":80"] {
        assert!(!known(host), "{host}");
    }
    for host in ["localhost:", "localhost:x", "localhost:99999", "localhost:+80", "[::1", "[x]:1"] {
        assert!(!known(host), "{host}");
    }
    for host in ["[::1]x", "::1", "127.1", "0x7f000001", "2130706433", "a@localhost", "localhost "]
    {
        assert!(!known(host), "{host}");
    }
}

#[test]
fn refusals_say_why() {
    let settings = Settings::default();
    let tcp = |headers| says(admit(&settings, Peer::Tcp, &head("GET", headers)));
    let reason = "403 Host \"evil.example\" is not known here; allow_hosts, or host:NAME in \
                  LUMALLOC_EXPORTER, makes a name known";
    assert_eq!(tcp(&[("host", "evil.example")]), reason);
    assert_eq!(tcp(&[("host", "evil.example:9464")]), reason, "as it is to be made known");
    let whole = tcp(&[("host", "evil.example:x")]);
    assert_eq!(whole, reason.replace("evil.example", "evil.example:x"));
    assert_eq!(tcp(&[]), "400 the request has no Host");
    assert_eq!(tcp(&[("host", "localhost"), ("host", "localhost")]), "400 host is there twice");
    let mut old = head("GET", &[]);
    old.version = Version::HTTP_10;
    assert_eq!(says(admit(&settings, Peer::Tcp, &old)), "ok");
    let mut full = head("GET", &[("host", "localhost")]);
    full.uri = "http://evil.example/stats".parse().unwrap();
    assert_eq!(says(admit(&settings, Peer::Tcp, &full)), reason);
}

#[test]
fn pages_of_other_sites_are_kept_out() {
    let settings = Settings::default();
    let ask = |method, more: &[(&str, &str)]| {
        let mut headers = vec![("host", "localhost:9464")];
        headers.extend(more);
        says(admit(&settings, Peer::Tcp, &head(method, &headers)))
    };
    for method in ["GET", "POST"] {
        for origin in ["http://localhost:9464", "https://LOCALHOST:9464"] {
            assert_eq!(ask(method, &[("origin", origin)]), "ok");
        }
        for origin in ["null", "http://localhost", "http://evil.example", "localhost:9464", ""] {
            let answer = ask(method, &[("origin", origin)]);
            assert_eq!(answer, "403 a page of another origin asks", "{origin}");
        }
        for site in ["cross-site", "same-site", "", "new"] {
            let answer = ask(method, &[("sec-fetch-site", site)]);
            assert_eq!(answer, "403 a page of another site asks", "{site}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(ask(method, &[("sec-fetch-site", site)]), "ok");
        }
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        let followed = if method == "GET" { "ok" } else { "403 a page of another site asks" };
        assert_eq!(ask(method, &link), followed);
        let frame = [link[0], link[1], ("sec-fetch-dest", "iframe")];
        assert_eq!(ask(method, &frame), "403 a page of another site asks");
    }
}

#[test]
fn unix_peers_are_users() {
    let ours = crate::user::effective();
    let settings = Settings { users: vec![70_001], ..Settings::default() };
    let ask = |user| says(admit(&settings, Peer::Unix(user), &head("GET", &[])));
    for user in [0, ours, 70_001] {
        assert_eq!(ask(Some(user)), "ok");
    }
    assert_eq!(ask(Some(70_002)), "403 user 70002 may not ask here");
    assert_eq!(ask(None), "403 the system does not say who asks");
}

/// Every peer, with and without a token, with every kind of `Authorization`.
#[test]
fn the_token_is_asked_for_where_one_is_set() {
    let path = std::env::temp_dir().join(format!("lumalloc-guard-{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new();
    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut file, b"0123456789abcdef").unwrap();
    let token = TokenFile::open(path.clone()).unwrap();
    let without = Settings::default();
    let with = Settings { token: Some(token), ..Settings::default() };
    let nobody = "401 a token is needed: Authorization: Bearer ...";
    let wrong = "401 this is not the token";
    let offers: [(&[(&str, &str)], &str); 9] = [
        (&[], nobody),
        (&[("authorization", "Bearer 0123456789abcdef")], "ok"),
        (&[("authorization", "bearer  0123456789abcdef")], "ok"),
        (&[("authorization", "Bearer 0123456789abcdeF")], wrong),
        (&[("authorization", "Bearer ")], wrong),
        (&[("authorization", "")], wrong),
        (&[("authorization", "0123456789abcdef")], wrong),
        (&[("authorization", "Basic 0123456789abcdef")], wrong),
        (
            &[
                ("authorization", "Bearer 0123456789abcdef"),
                ("authorization", "Bearer 0123456789abcdef"),
            ],
            "400 authorization is there twice",
        ),
    ];
    for (headers, expected) in offers {
        for peer in [Peer::Tcp, Peer::Guest, Peer::Unix(Some(0))] {
            for method in ["GET", "POST"] {
                let head = head(method, headers);
                assert_eq!(says(identify(&without, peer, &head)), "ok");
                let local = matches!(peer, Peer::Unix(_));
                let expected = if local { "ok" } else { expected };
                assert_eq!(says(identify(&with, peer, &head)), expected, "{peer:?} {headers:?}");
            }
        }
    }
    std::fs::remove_file(&path).unwrap();
    let answer = says(identify(&with, Peer::Tcp, &head("GET", offers[1].0)));
    let reason = format!(
        "503 the token file {} cannot be read: No such file or directory (os error 2)",
        path.display()
    );
    assert_eq!(answer, reason);
}

#[test]
fn who_lacks_a_token_is_told_what_is_wanted() {
    let refusal = Refusal { status: StatusCode::UNAUTHORIZED, reason: "x".into() };
    assert_eq!(refusal.answer().headers()["www-authenticate"], "Bearer realm=\"lumalloc\"");
    let refusal = Refusal { status: StatusCode::FORBIDDEN, reason: "x".into() };
    assert!(!refusal.answer().headers().contains_key("www-authenticate"));
}
