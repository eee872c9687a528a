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
    pub(crate) answer: fn(&Context, &Asked) -> Answer,
}

const fn get(
    path: &'static str,
    surface: Surface,
    place: Place,
    answer: fn(&Context, &Asked) -> Answer,
) -> Route {
    Route { path, method: Method::GET, surface, place, answer }
}

/// Every path there is.
pub(crate) static ROUTES: &[Route] = &[
    get("/-/healthy", Surface::Metrics, Place::Here, paths::health::healthy),
    get("/-/ready", Surface::Metrics, Place::Here, paths::health::ready),
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

/// Finds the route; a longer path wins.
pub(crate) fn find(path: &str, method: &Method) -> Found {
    let fits = |route: &&Route| match route.path {
        "/" => path == "/",
        branch if branch.ends_with('/') => path.starts_with(branch),
        exact => path == exact,
    };
    let fitting: Vec<&'static Route> = ROUTES.iter().filter(fits).collect();
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
