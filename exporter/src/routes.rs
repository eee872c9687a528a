//! The table of all paths, with the function that answers each.
use crate::answer::Answer;
use crate::context::Context;
use crate::format::Bad;
use crate::paths;
use bytes::Bytes;
use hyper::{Method, Request};
use std::time::Duration;

/// The surface that a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// Read-only numbers, which may be open to the network of a pod.
    Metrics,
    /// Everything.
    Admin,
}

/// The thread on which a path is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At once, on the thread of the connections. Such a path takes no lock of the allocator, so
    /// that it is answered even when the allocator is stuck.
    Here,
    /// On the thread that reads the allocator, with a time limit.
    Reader,
}

/// A request with its whole body.
pub(crate) type Asked = Request<Bytes>;

/// What is read first if a request asks for what changes during some time.
#[derive(Clone, Copy)]
pub(crate) struct First {
    /// How long to wait between the two readings; `None` if the request does not ask for it.
    pub(crate) wait: fn(&Asked) -> Result<Option<Duration>, Bad>,
    /// The first reading: the body of an answer with status 200.
    pub(crate) read: fn(&Context, &Asked) -> Answer,
}

/// The first reading, among the extensions of a request that asked for one.
#[derive(Clone)]
pub(crate) struct Before(pub(crate) Bytes);

/// One path of the table.
pub(crate) struct Route {
    /// The path. A path that ends with `/` stands for all paths below it too.
    pub(crate) path: &'static str,
    pub(crate) method: Method,
    pub(crate) surface: Surface,
    pub(crate) place: Place,
    /// Whether the path needs no token, because it tells nothing that must be kept secret.
    pub(crate) open: bool,
    /// Whether only one request of all such paths is served at a time. The next one gets 409.
    pub(crate) alone: bool,
    /// The bytes that a body may have even if the limit of the settings is lower.
    pub(crate) body: usize,
    /// Whether what changes during some time can be asked for.
    pub(crate) first: Option<First>,
    pub(crate) answer: fn(&Context, &Asked) -> Answer,
}

const fn get(
    path: &'static str,
    surface: Surface,
    place: Place,
    answer: fn(&Context, &Asked) -> Answer,
) -> Route {
    Route {
        path,
        method: Method::GET,
        surface,
        place,
        open: false,
        alone: false,
        body: 0,
        first: None,
        answer,
    }
}

const fn post(
    path: &'static str,
    surface: Surface,
    place: Place,
    answer: fn(&Context, &Asked) -> Answer,
) -> Route {
    Route {
        path,
        method: Method::POST,
        surface,
        place,
        open: false,
        alone: false,
        body: 0,
        first: None,
        answer,
    }
}

impl Route {
    /// Returns this route, without the need of a token.
    const fn open(mut self) -> Route {
        self.open = true;
        self
    }

    /// Returns this route, for bodies of up to a mebibyte.
    const fn long(mut self) -> Route {
        self.body = 1 << 20;
        self
    }

    /// Returns this route, with a first reading.
    const fn after(mut self, first: First) -> Route {
        self.first = Some(first);
        self
    }

    /// Returns this route, limited to one request at a time.
    const fn alone(mut self) -> Route {
        self.alone = true;
        self
    }
}

/// The table of all paths.
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
    get("/debug/pprof/", Surface::Admin, Place::Here, paths::pprof::index),
    get("/debug/pprof/allocs", Surface::Admin, Place::Reader, paths::pprof::allocs)
        .after(paths::pprof::FIRST)
        .alone(),
    get("/debug/pprof/cmdline", Surface::Admin, Place::Reader, paths::pprof::command_line),
    get("/debug/pprof/heap", Surface::Admin, Place::Reader, paths::pprof::heap)
        .after(paths::pprof::FIRST)
        .alone(),
    get("/debug/pprof/symbol", Surface::Admin, Place::Reader, paths::pprof::symbol),
    post("/debug/pprof/symbol", Surface::Admin, Place::Reader, paths::pprof::symbol).long(),
    get("/flamegraph", Surface::Admin, Place::Reader, paths::flame_graph::flamegraph).alone(),
    get("/heap", Surface::Admin, Place::Reader, paths::pprof::heap_v2).alone(),
    get("/map", Surface::Admin, Place::Reader, paths::map::map),
    get("/pprof/cmdline", Surface::Admin, Place::Reader, paths::pprof::command_line),
    get("/pprof/heap", Surface::Admin, Place::Reader, paths::pprof::heap_v2).alone(),
    get("/pprof/symbol", Surface::Admin, Place::Reader, paths::pprof::symbol),
    post("/pprof/symbol", Surface::Admin, Place::Reader, paths::pprof::symbol).long(),
    post("/monitor/start", Surface::Admin, Place::Reader, paths::monitor::start),
    post("/monitor/stop", Surface::Admin, Place::Reader, paths::monitor::stop),
    post("/profile/reset", Surface::Admin, Place::Reader, paths::profile::reset),
    post("/profile/start", Surface::Admin, Place::Reader, paths::profile::start),
    post("/profile/stop", Surface::Admin, Place::Reader, paths::profile::stop),
    get("/stats", Surface::Admin, Place::Reader, paths::stats::stats),
];

/// Returns the place of a route in the table.
pub(crate) fn place(route: &'static Route) -> Option<usize> {
    ROUTES.iter().position(|one| std::ptr::eq(one, route))
}

/// The result of [`find`] for a path and a method.
pub(crate) enum Found {
    /// A route.
    Route(&'static Route),
    /// The path exists, but with these methods.
    WrongMethod(Vec<Method>),
    /// There is no such path.
    Nothing,
}

/// Finds the route among the routes of a surface. A longer path wins.
pub(crate) fn find(surface: Surface, path: &str, method: &Method) -> Found {
    // The body of an answer to HEAD is left out when the answer is sent.
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
