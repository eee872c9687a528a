//! Which path is answered by what: the table of all paths.
use crate::answer::Answer;
use crate::context::Context;
use crate::paths;
use bytes::Bytes;
use hyper::{Method, Request};

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// Read-only numbers; may be open to the network of a pod.
    Metrics,
    /// Everything.
    Admin,
}

/// On which thread a path is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At once, on the thread of the connections: what takes no lock of the allocator, so that it
    /// answers when the allocator is stuck.
    Here,
    /// On the thread that reads the allocator, with a time limit.
    Reader,
}

/// A request with all of its body.
pub(crate) type Asked = Request<Bytes>;

/// One path.
pub(crate) struct Route {
    /// The path; one that ends with `/` stands for all below it too.
    pub(crate) path: &'static str,
    pub(crate) method: Method,
    pub(crate) surface: Surface,
    pub(crate) place: Place,
    /// Whether it needs no token: it tells nothing that others must not know.
    pub(crate) open: bool,
    /// Whether only one request at a time is at it; the next one is answered 409.
    pub(crate) alone: bool,
    pub(crate) answer: fn(&Context, &Asked) -> Answer,
}

const fn get(
    path: &'static str,
    surface: Surface,
    place: Place,
    answer: fn(&Context, &Asked) -> Answer,
) -> Route {
    Route { path, method: Method::GET, surface, place, open: false, alone: false, answer }
}

const fn post(
    path: &'static str,
    surface: Surface,
    place: Place,
    answer: fn(&Context, &Asked) -> Answer,
) -> Route {
    Route { path, method: Method::POST, surface, place, open: false, alone: false, answer }
}

impl Route {
    /// The same, without a token.
    const fn open(mut self) -> Route {
        self.open = true;
        self
    }

    /// The same, one at a time.
    #[allow(dead_code, reason = "nothing is written yet")]
    const fn alone(mut self) -> Route {
        self.alone = true;
        self
    }
}

/// Every path there is.
pub(crate) static ROUTES: &[Route] = &[
    get("/", Surface::Admin, Place::Here, paths::page::page).open(),
    get("/-/healthy", Surface::Metrics, Place::Here, paths::health::healthy).open(),
    get("/-/ready", Surface::Metrics, Place::Here, paths::health::ready).open(),
    get("/ctl", Surface::Admin, Place::Here, paths::ctl::list),
    get("/ctl/", Surface::Admin, Place::Reader, paths::ctl::read),
    post("/ctl/", Surface::Admin, Place::Reader, paths::ctl::write),
    get("/metrics", Surface::Metrics, Place::Reader, paths::metrics::metrics),
    get("/doctor", Surface::Admin, Place::Reader, paths::doctor::doctor),
    post("/dump", Surface::Admin, Place::Reader, paths::dump::dump).alone(),
    get("/dumps", Surface::Admin, Place::Reader, paths::dumps::list),
    get("/dumps/", Surface::Admin, Place::Reader, paths::dumps::one),
    get("/stats", Surface::Admin, Place::Reader, paths::stats::stats),
];

/// What a path and a method lead to.
pub(crate) enum Found {
    /// A route.
    Route(&'static Route),
    /// The path exists with these methods.
    WrongMethod(Vec<Method>),
    /// There is no such path.
    Nothing,
}

/// Finds the route among those of a surface; a longer path wins.
pub(crate) fn find(surface: Surface, path: &str, method: &Method) -> Found {
    // The body of an answer to HEAD is left out where it is sent.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let is_here = |route: &&Route| surface == Surface::Admin || route.surface == surface;
    let fits = |route: &&Route| match route.path {
        "/" => path == "/",
        branch if branch.ends_with('/') => path.starts_with(branch),
        exact => path == exact,
    };
    let fitting: Vec<&'static Route> = ROUTES.iter().filter(is_here).filter(fits).collect();
    let Some(longest) = fitting.iter().map(|route| route.path.len()).max() else {
        return Found::Nothing;
    };
    let fitting = fitting.into_iter().filter(|route| route.path.len() == longest);
    let mut methods = Vec::new();
    for route in fitting {
        if route.method == *method {
            return Found::Route(route);
        }
        methods.push(route.method.clone());
    }
    Found::WrongMethod(methods)
}
