//! The table of all paths, with the function that answers each.
use crate::paths;
use crate::route::{Place, Route, Surface, get, post};
use crate::route_names::{RouteName, RouteNames};
use hyper::Method;

/// The table of all paths.
pub(crate) static ROUTES: &[Route] = &[
    get("/", Surface::Admin, Place::Here, paths::page::page).open(),
    get("/-/healthy", Surface::Metrics, Place::Here, paths::health::healthy).open(),
    get("/-/ready", Surface::Metrics, Place::Here, paths::health::ready).open(),
    get("/ctl", Surface::Admin, Place::Here, paths::ctl::list),
    get("/ctl/", Surface::Admin, Place::Reader, paths::ctl::read),
    post("/ctl/", Surface::Admin, Place::Reader, paths::ctl::write).with_body(),
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

/// Returns the number of a route, by which it is counted. One that is not in the table has that of
/// requests without a route.
pub(crate) fn number(route: &'static Route) -> usize {
    ROUTES.iter().position(|one| std::ptr::eq(one, route)).unwrap_or(ROUTES.len())
}

/// Returns the names of all routes, by their numbers.
pub(crate) fn names() -> RouteNames {
    let method = |route: &Route| if route.method == Method::POST { "POST" } else { "GET" };
    let name = |route: &Route| RouteName { path: route.path, method: method(route) };
    RouteNames::new(ROUTES.iter().map(name))
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
