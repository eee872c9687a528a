//! What counts know of the table of all paths.
use std::sync::Arc;

/// The path and the method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteName {
    pub(crate) path: &'static str,
    /// `GET` (which includes `HEAD`) or `POST`.
    pub(crate) method: &'static str,
}

/// The names of all routes. A route has the number of its place here. One more number is for
/// requests without a route.
#[derive(Clone, Debug)]
pub(crate) struct RouteNames(Arc<[RouteName]>);

impl RouteNames {
    pub(crate) fn new(names: impl Iterator<Item = RouteName>) -> RouteNames {
        RouteNames(names.collect())
    }

    /// Returns how many numbers there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len() + 1
    }

    /// Returns the number of requests without a route.
    pub(crate) fn of_none(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of the route with this path, or that of requests without a route.
    pub(crate) fn of_path(&self, path: &str) -> usize {
        self.0.iter().position(|name| name.path == path).unwrap_or(self.of_none())
    }

    /// Returns the name of the route with this number. Text that clients invent is no name, so
    /// requests without a route have `other`.
    pub(crate) fn get(&self, number: usize) -> RouteName {
        let other = RouteName { path: "other", method: "other" };
        self.0.get(number).copied().unwrap_or(other)
    }
}
