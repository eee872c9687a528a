//! The owner whose blocks a cache freed last, and when its lock is worth a try.

/// The owner whose blocks a cache freed last, and how many slow paths it had taken by then.
#[derive(Clone, Copy)]
pub(crate) struct IdleHint {
    id: u32,
    activity: u64,
    /// Batches until the next look at an owner, and how many there were after the last one.
    left: u8,
    pause: u8,
}

/// Batches that pass at most between two looks.
const LONGEST: u8 = 15;

impl IdleHint {
    /// No owner yet: no owner has taken that many slow paths.
    pub(crate) const fn none() -> IdleHint {
        IdleHint { id: 0, activity: u64::MAX, left: 0, pause: 0 }
    }

    /// Whether it is time to look at an owner again. Called once for each batch.
    pub(in crate::middle) fn is_time(&mut self) -> bool {
        let is_time = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_time
    }

    /// Notes the owner with number `id`, which has taken `activity` slow paths. Returns whether it
    /// took none since the last look.
    pub(in crate::middle) fn is_idle(&mut self, id: u32, activity: u64) -> bool {
        if self.id == id && self.activity == activity {
            self.pause = 0;
            return true;
        }
        let pause = (self.pause * 2 + 1).min(LONGEST);
        *self = IdleHint { id, activity, left: pause, pause };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_at_work_is_looked_at_less_and_less() {
        let mut hint = IdleHint::none();
        let mut looks = |activity: &dyn Fn(u32) -> u64, batches: u32| -> Vec<u32> {
            let found = (0..batches).filter(|n| {
                hint.is_time() && {
                    hint.is_idle(3, activity(*n));
                    true
                }
            });
            found.collect()
        };
        assert_eq!(looks(&u64::from, 60), [0, 2, 6, 14, 30, 46]);
        let mut hint = IdleHint::none();
        assert!(hint.is_time() && !hint.is_idle(3, 7), "it was not looked at before");
        assert!(!hint.is_time() && hint.is_time() && hint.is_idle(3, 7));
        assert!(hint.is_time() && !hint.is_idle(4, 7), "another one");
    }
}
