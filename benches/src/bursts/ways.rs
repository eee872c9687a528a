//! The ways in which the service runs: every peer with its default options, and some settings.

use crate::peers::{Environment, OURS};
use crate::prepare::Contender;
use crate::programs::launch::preload;
use std::process::Command;

/// The way that is judged: lumalloc with its default options.
pub(super) const DEFAULTS: &str = OURS;
/// lumalloc without any purging, which its latencies are compared with.
pub(super) const NO_PURGING: &str = "lumalloc, no purging";
/// lumalloc whose pages are given back by slow paths only.
pub(super) const NO_THREAD: &str = "lumalloc, background_thread:false";

/// Names of settings of lumalloc, with their variables.
pub(super) type Settings = &'static [(&'static str, Environment)];

/// The settings that run beside the peers.
pub(super) const BESIDE_PEERS: Settings = &[
    (NO_THREAD, &[("LUMALLOC_CONF", "background_thread:false")]),
    (KEPT_THREAD, &[("LUMALLOC_CONF", "background_thread:true")]),
    (NO_PURGING, &[("LUMALLOC_CONF", NEVER)]),
];

/// The settings that are compared with each other.
pub(super) const ALONE: Settings = &[
    (NO_THREAD, &[("LUMALLOC_CONF", "background_thread:false")]),
    (KEPT_THREAD, &[("LUMALLOC_CONF", "background_thread:true")]),
    ("lumalloc, dirty_decay_ms:3000", &[("LUMALLOC_CONF", "dirty_decay_ms:3000")]),
    ("lumalloc, dirty_decay_ms:1000", &[("LUMALLOC_CONF", "dirty_decay_ms:1000")]),
    ("lumalloc, dirty_decay_ms:0", &[("LUMALLOC_CONF", "dirty_decay_ms:0")]),
    ("lumalloc, tcache_max:1024", &[("LUMALLOC_CONF", "tcache_max:1024")]),
    ("lumalloc, tcache:false", &[("LUMALLOC_CONF", "tcache:false")]),
    ("lumalloc, narenas:1", &[("LUMALLOC_CONF", "narenas:1")]),
    ("lumalloc, thp:never", &[("LUMALLOC_CONF", "thp:never")]),
    (NO_PURGING, &[("LUMALLOC_CONF", NEVER)]),
];

const KEPT_THREAD: &str = "lumalloc, background_thread:true";
const NEVER: &str = "dirty_decay_ms:-1,background_thread:false";

/// One allocator with its options.
#[derive(Clone)]
pub(crate) struct Way<'a> {
    pub(super) name: String,
    contender: Option<&'a Contender>,
    more: Environment,
    /// Whether this is lumalloc, in any configuration.
    pub(super) is_ours: bool,
    /// Whether these are the default options of a peer.
    pub(super) is_default: bool,
}

impl<'a> Way<'a> {
    fn of(contender: &'a Contender, name: String, more: Environment, is_default: bool) -> Self {
        let is_ours = contender.peer.is_ours();
        Self { name, contender: Some(contender), more, is_ours, is_default }
    }

    /// Sets the environment of the process.
    pub(super) fn set(&self, command: &mut Command) {
        if let Some(contender) = self.contender {
            preload(command, contender);
        }
        command.envs(self.more.iter().copied());
    }

    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        let is_default = !name.contains(',');
        let is_ours = name.starts_with(OURS);
        Self { name: name.to_owned(), contender: None, more: &[], is_ours, is_default }
    }
}

/// All ways, in the order of the table: the peers, and lumalloc with these settings.
pub(super) fn of(contenders: &[Contender], settings: Settings) -> Vec<Way<'_>> {
    let mut ways = Vec::new();
    for contender in contenders {
        let peer = contender.peer;
        ways.push(Way::of(contender, peer.name.to_owned(), &[], true));
        if peer.name == OURS {
            let settings = settings.iter();
            ways.extend(
                settings.map(|(name, more)| Way::of(contender, (*name).to_owned(), more, false)),
            );
        } else if !peer.background.is_empty() && !peer.is_ours() {
            let name = format!("{}, background_thread:true", peer.name);
            ways.push(Way::of(contender, name, peer.background, false));
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::by_name;

    fn contender(name: &str) -> Contender {
        let peer = by_name(name).unwrap();
        let shared_object = Some(format!("lib{name}.so").into());
        Contender { peer, shared_object, rust_binary: None, versions: (None, None) }
    }

    #[test]
    fn defaults_come_first_and_settings_are_set() {
        let contenders = ["lumalloc", "jemalloc", "glibc"].map(contender);
        let ways = of(&contenders, BESIDE_PEERS);
        let names: Vec<&str> = ways.iter().map(|way| way.name.as_str()).collect();
        assert_eq!(names[0], DEFAULTS);
        assert_eq!(names[4..], ["jemalloc", "jemalloc, background_thread:true", "glibc"]);
        let variable = |way: &Way, name: &str| {
            let mut command = Command::new("true");
            way.set(&mut command);
            let found = command.get_envs().find(|(key, _)| *key == name);
            found.and_then(|(_, value)| value).map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(variable(&ways[0], "LD_PRELOAD").unwrap(), "liblumalloc.so");
        assert_eq!(variable(&ways[0], "LUMALLOC_CONF"), None);
        let no_purging = ways.iter().find(|way| way.name == NO_PURGING).unwrap();
        let set = variable(no_purging, "LUMALLOC_CONF").unwrap();
        assert_eq!(set, "dirty_decay_ms:-1,background_thread:false");
        assert!(ways[0].is_default && !no_purging.is_default && no_purging.is_ours);
    }
}
