//! What a client would rather have: `Accept`, with its weights. Source: RFC 9110, 12.5.1.
use hyper::HeaderMap;
use hyper::header::ACCEPT;

/// One `type/subtype;parameter=value;q=0.5` of the header.
struct Range<'a> {
    kind: &'a str,
    parameters: Vec<&'a str>,
    /// Thousandths.
    weight: u16,
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Option<Range<'a>> {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().filter(|kind| kind.contains('/'))?;
        let (mut parameters, mut weight) = (Vec::new(), 1000);
        for part in parts.filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((name, value)) if name.trim().eq_ignore_ascii_case("q") => {
                    weight = thousandths(value.trim())?;
                }
                _ => parameters.push(part),
            }
        }
        Some(Range { kind, parameters, weight })
    }

    /// How exactly it names an offer; `None` when it does not.
    fn fit(&self, offer: &str) -> Option<usize> {
        let mut parts = offer.split(';').map(str::trim);
        let kind = parts.next()?;
        let offered: Vec<&str> = parts.collect();
        let has = |wanted: &&str| offered.iter().any(|other| other.eq_ignore_ascii_case(wanted));
        let exactness = match self.kind.split_once('/')? {
            ("*", "*") => 1,
            (family, "*") if same_family(family, kind) => 2,
            _ if self.kind.eq_ignore_ascii_case(kind) => 3,
            _ => return None,
        };
        self.parameters.iter().all(has).then_some(exactness + self.parameters.len())
    }
}

fn same_family(family: &str, kind: &str) -> bool {
    kind.split('/').next().is_some_and(|offered| offered.eq_ignore_ascii_case(family))
}

/// `0.25` as 250; at most three digits count.
fn thousandths(text: &str) -> Option<u16> {
    let weight: f32 = text.parse().ok()?;
    (0.0..=1.0).contains(&weight).then_some((weight * 1000.0) as u16)
}

/// The place of the offer that the client likes best; of those it likes the same, the first. A
/// client that says nothing gets the first; `None`: it takes none of them.
pub(crate) fn choose(headers: &HeaderMap, offers: &[&str]) -> Option<usize> {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let ranges: Vec<Range<'_>> =
        lines.flat_map(|line| line.split(',')).filter_map(Range::read).collect();
    if ranges.is_empty() {
        return Some(0);
    }
    // The range that names an offer most exactly decides about it.
    let weight = |offer: &&str| {
        let fitting = ranges.iter().filter_map(|range| Some((range.fit(offer)?, range.weight)));
        fitting.max_by_key(|&(exactness, _)| exactness).map_or(0, |(_, weight)| weight)
    };
    let mut best = None;
    for (place, weight) in offers.iter().map(weight).enumerate() {
        if weight > best.map_or(0, |(_, most)| most) {
            best = Some((place, weight));
        }
    }
    best.map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    const OFFERS: [&str; 3] = [
        "text/plain; version=0.0.4; charset=utf-8",
        "application/json",
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    ];

    #[track_caller]
    fn chosen(accept: &str) -> Option<usize> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
        choose(&headers, &OFFERS)
    }

    #[test]
    fn the_heaviest_wins_and_the_first_of_equals() {
        assert_eq!(choose(&HeaderMap::new(), &OFFERS), Some(0));
        for (accept, expected) in [
            ("*/*", Some(0)),
            ("application/json", Some(1)),
            ("APPLICATION/JSON", Some(1)),
            ("text/plain;q=0.5, application/json;q=0.6", Some(1)),
            ("text/plain;q=0.6, application/json;q=0.5", Some(0)),
            ("application/*", Some(1)),
            ("application/json;q=0, */*;q=0.1", Some(0)),
            ("text/*;q=0.3, text/plain;q=0.1, application/json;q=0.2", Some(1)),
            ("image/png", None),
            ("text/plain;q=0", None),
            ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", Some(0)),
        ] {
            assert_eq!(chosen(accept), expected, "{accept}");
        }
    }

    #[test]
    fn parameters_must_be_among_the_offer_s() {
        assert_eq!(chosen("application/openmetrics-text;version=1.0.0"), Some(2));
        assert_eq!(chosen("application/openmetrics-text;version=0.0.1"), None);
        // What Prometheus sends.
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.75,\
                          application/openmetrics-text;version=0.0.1;q=0.5,\
                          text/plain;version=0.0.4;q=0.25,*/*;q=0.1";
        assert_eq!(chosen(prometheus), Some(2));
    }

    #[test]
    fn what_is_no_range_is_not_there() {
        for odd in ["", ",", ";", "json", "*/*;q=2", "*/*;q=x", "*/*;q=-1"] {
            assert_eq!(chosen(odd), Some(0), "{odd:?}");
        }
    }

    #[test]
    fn several_header_lines_are_one() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT, HeaderValue::from_static("text/plain;q=0.1"));
        headers.append(ACCEPT, HeaderValue::from_static("application/json"));
        assert_eq!(choose(&headers, &OFFERS), Some(1));
    }
}
