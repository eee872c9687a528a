//! `thread.*`. Made from the rows of the namespace.

use crate::std_api::key::{Act, Key};

/// `thread.idle`: says that this thread will do nothing for long: its cache keeps nothing.
pub const IDLE: Key<Act> = Key::new("thread.idle");

/// `thread.prof.*`
pub mod prof {
    use crate::std_api::key::{Key, ReadWrite};
    use crate::std_api::typed::Text;

    /// `thread.prof.active`: whether this thread is sampled.
    pub const ACTIVE: Key<ReadWrite<bool>> = Key::new("thread.prof.active");

    /// `thread.prof.name`: label of this thread in profiles.
    pub const NAME: Key<ReadWrite<Text>> = Key::new("thread.prof.name");
}

/// `thread.tcache.*`
pub mod tcache {
    use crate::std_api::key::{Act, Key};

    /// `thread.tcache.flush`: gives this thread's cached blocks back.
    pub const FLUSH: Key<Act> = Key::new("thread.tcache.flush");
}
