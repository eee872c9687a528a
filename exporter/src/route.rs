//! A path with the function that answers it.
use crate::answer::Answer;
use crate::asked::Asked;
use crate::context::Context;
use crate::format::Bad;
use hyper::Method;
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

/// A function that answers a route.
pub(crate) type Answers = fn(&Context, &Asked) -> Answer;

/// What is read first if a request asks for what changes during some time.
#[derive(Clone, Copy)]
pub(crate) struct First {
    /// How long to wait between the two readings; `None` if the request does not ask for it.
    pub(crate) wait: fn(&Asked) -> Result<Option<Duration>, Bad>,
    /// The first reading: the body of an answer with status 200.
    pub(crate) read: Answers,
}

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
    /// Whether a body says something. Other paths refuse one.
    pub(crate) takes_body: bool,
    /// The bytes that a body may have even if the limit of the settings is lower.
    pub(crate) body: usize,
    /// Whether what changes during some time can be asked for.
    pub(crate) first: Option<First>,
    pub(crate) answer: Answers,
}

pub(crate) const fn get(
    path: &'static str,
    surface: Surface,
    place: Place,
    answer: Answers,
) -> Route {
    route(Method::GET, path, (surface, place), answer)
}

pub(crate) const fn post(
    path: &'static str,
    surface: Surface,
    place: Place,
    answer: Answers,
) -> Route {
    route(Method::POST, path, (surface, place), answer)
}

const fn route(
    method: Method,
    path: &'static str,
    (surface, place): (Surface, Place),
    answer: Answers,
) -> Route {
    let (open, alone, takes_body, body, first) = (false, false, false, 0, None);
    Route { path, method, surface, place, open, alone, takes_body, body, first, answer }
}

impl Route {
    /// Returns this route, without the need of a token.
    pub(crate) const fn open(mut self) -> Route {
        self.open = true;
        self
    }

    /// Returns this route, for requests with a body.
    pub(crate) const fn with_body(mut self) -> Route {
        self.takes_body = true;
        self
    }

    /// Returns this route, for bodies of up to a mebibyte.
    pub(crate) const fn long(mut self) -> Route {
        self.takes_body = true;
        self.body = 1 << 20;
        self
    }

    /// Returns this route, with a first reading.
    pub(crate) const fn after(mut self, first: First) -> Route {
        self.first = Some(first);
        self
    }

    /// Returns this route, limited to one request at a time.
    pub(crate) const fn alone(mut self) -> Route {
        self.alone = true;
        self
    }
}
