//! Values by name: of one key as JSON, or the text of all keys below a branch.
use super::branch_text::BranchText;
use super::{Namespace, Target, text_room};
use crate::format::Format;
use lumalloc_ctl::json::to_json;
use lumalloc_ctl::{Error, Type, Value};
use lumalloc_namespace::{Fact, facts};
use serde_json::Value as Json;

/// The most indices that are walked. There are no more arenas than that.
const MOST: usize = 4096;
/// The name of an arena, which requests may write.
pub(crate) const ARENA_NAME: &str = "arena.<i>.name";

/// Whether a key's value is shown. Addresses and values of the calling thread alone are not.
pub(crate) fn is_told(row: &Fact) -> bool {
    let is_text = text_room(row).is_some();
    let has_value = row.is_read() || is_text;
    let is_address = matches!(row.kind, Type::Pointer(_)) && !is_text;
    has_value && !is_address && !row.name.starts_with("thread.")
}

/// Returns the value of a key as JSON.
pub(crate) fn value(namespace: &dyn Namespace, target: &Target) -> Result<Json, Error> {
    match text_room(target.row) {
        Some(_) => namespace.text(target).map(Json::from),
        None => namespace.read(target).map(to_json),
    }
}

/// Returns the rows of all shown values below a branch.
fn rows(path: &[&str]) -> impl Iterator<Item = &'static Fact> {
    facts().iter().filter(move |row| is_told(row) && is_below(row, path))
}

/// Whether there is a branch of this name with values that are shown.
pub(crate) fn is_branch(namespace: &dyn Namespace, branch: &str) -> bool {
    let path: Vec<&str> = branch.split('.').collect();
    let mut mib = [0; super::MAX_DEPTH];
    rows(&path).next().is_some() && namespace.mib(branch, &mut mib).is_ok()
}

/// Returns the text of all shown values below a branch, or `None` if there is no such branch.
///
/// # Errors
/// [`Error::NoMemory`] if there is none for the text.
pub(crate) fn below(
    namespace: &dyn Namespace,
    branch: &str,
    format: Format,
) -> Result<Option<String>, Error> {
    if !is_branch(namespace, branch) {
        return Ok(None);
    }
    let path: Vec<&str> = branch.split('.').collect();
    let mut leaves: Vec<Leaf> = rows(&path).filter_map(|row| Leaf::of(namespace, row)).collect();
    leaves.sort_by(|one, other| one.components.cmp(&other.components));
    let is_index = |row: &Fact, place| row.name.split('.').nth(place).is_some_and(is_placeholder);
    let indices = rows(&path).next().into_iter().flat_map(|row| {
        let numbers = path.iter().enumerate().filter(move |(place, _)| is_index(row, *place));
        numbers.filter_map(|(place, number)| Some((place, number.parse().ok()?)))
    });
    let mut walk = Walk { namespace, indices: indices.collect(), text: BranchText::new(format)? };
    walk.object(&leaves, path.len(), branch)?;
    walk.text.whole().map(Some)
}

/// Whether a component of a row's name stands for an index.
fn is_placeholder(component: &str) -> bool {
    component.starts_with('<')
}

/// Whether a row lies below these components. A number stands for any index.
fn is_below(row: &Fact, path: &[&str]) -> bool {
    let fits = |(component, wanted): (&str, &&str)| {
        let is_number = !wanted.is_empty() && wanted.bytes().all(|byte| byte.is_ascii_digit());
        component == *wanted || component.starts_with('<') && is_number
    };
    row.name.split('.').count() > path.len() && row.name.split('.').zip(path).all(fits)
}

/// A key with 0 for each of the indices.
struct Leaf {
    target: Target,
    components: Vec<&'static str>,
}

impl Leaf {
    fn of(namespace: &dyn Namespace, row: &'static Fact) -> Option<Leaf> {
        let components: Vec<&str> = row.name.split('.').collect();
        let zero = |part: &&'static str| if part.starts_with('<') { "0" } else { *part };
        let name: Vec<&str> = components.iter().map(zero).collect();
        Some(Leaf { target: namespace.find(&name.join(".")).ok()?, components })
    }
}

struct Walk<'a> {
    namespace: &'a dyn Namespace,
    /// The indices that were chosen on the way down, with their places.
    indices: Vec<(usize, usize)>,
    text: BranchText,
}

impl Walk<'_> {
    /// Writes the values below a path of `depth` components.
    fn object(&mut self, leaves: &[Leaf], depth: usize, path: &str) -> Result<(), Error> {
        let mut rest = leaves;
        while let Some(first) = rest.first() {
            let Some(&name) = first.components.get(depth) else { break };
            let same = |leaf: &&Leaf| leaf.components.get(depth) == Some(&name);
            let (group, others) = rest.split_at(rest.iter().take_while(same).count());
            rest = others;
            if is_placeholder(name) {
                for index in self.existing(first, depth, path) {
                    self.indices.push((depth, index));
                    self.member(group, depth, path, &index.to_string())?;
                    self.indices.pop();
                }
            } else if first.components.len() > depth + 1 {
                self.member(group, depth, path, name)?;
            } else if let Some(value) = self.value(first) {
                self.text.value(name, &value)?;
            }
        }
        Ok(())
    }

    /// Writes an object. It has no values if it is of a region that is closed, whose number is
    /// still there.
    fn member(
        &mut self,
        leaves: &[Leaf],
        depth: usize,
        path: &str,
        name: &str,
    ) -> Result<(), Error> {
        let open = self.text.open(name)?;
        self.object(leaves, depth + 1, &format!("{path}.{name}"))?;
        self.text.close(&open)
    }

    fn value(&self, leaf: &Leaf) -> Option<Json> {
        let target = leaf.target;
        let at = |target: Target, &(place, index): &(usize, usize)| target.with(place, index);
        value(self.namespace, &self.indices.iter().fold(target, at)).ok()
    }

    /// Returns the indices that exist at this place. Arenas may be missing between others.
    fn existing(&self, leaf: &Leaf, depth: usize, path: &str) -> Vec<usize> {
        let exists = |index: &usize| {
            let mut mib = [0; super::MAX_DEPTH];
            self.namespace.mib(&format!("{path}.{index}"), &mut mib).is_ok()
        };
        let parent = depth.checked_sub(1).and_then(|place| leaf.components.get(place));
        if matches!(parent, Some(&"arena" | &"arenas")) {
            (0..arenas(self.namespace)).filter(exists).collect()
        } else if matches!(parent, Some(&"region")) {
            (0..regions(self.namespace)).collect()
        } else {
            (0..MOST).take_while(exists).collect()
        }
    }
}

/// Returns how many arenas there may be.
pub(crate) fn arenas(namespace: &dyn Namespace) -> usize {
    let limit = namespace.find("arenas.narenas").and_then(|target| namespace.read(&target));
    match limit {
        Ok(Value::Unsigned(limit)) => MOST.min(limit as usize),
        _ => MOST,
    }
}

/// Returns how many arenas there are.
pub(crate) fn initialized_arenas(namespace: &dyn Namespace) -> usize {
    let Ok(first) = namespace.find("arena.0.initialized") else { return 0 };
    let is_there = |index: &usize| namespace.read(&first.with(1, *index)) == Ok(Value::Bool(true));
    (0..arenas(namespace)).filter(is_there).count()
}

/// Returns how many numbers regions had.
fn regions(namespace: &dyn Namespace) -> usize {
    match namespace.find("vm.nregions").and_then(|target| namespace.read(&target)) {
        Ok(Value::Size(end)) => MOST.min(end),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Linked;

    fn below(namespace: &dyn Namespace, branch: &str) -> Option<Json> {
        let text = super::below(namespace, branch, Format::Json).unwrap();
        assert_eq!(text.is_some(), is_branch(namespace, branch));
        text.map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_branch_is_an_object() {
        let bin = below(&Linked, "arenas.bin.1").unwrap();
        assert_eq!(bin["size"], 16);
        assert_eq!(bin["nregs"], 4096);
        let bins = below(&Linked, "arenas.bin").unwrap();
        assert_eq!(bins["1"], bin);
        assert!(below(&Linked, "opt").unwrap()["dirty_decay_ms"].is_i64());
        assert!(below(&Linked, "stats.arenas.0.bins.0").unwrap()["mutex"]["num_ops"].is_u64());
    }

    #[test]
    fn the_branches_of_lumalloc_ctl_are_the_same() {
        let read = |branch| {
            let mut theirs = lumalloc_ctl::read_json(branch).unwrap();
            if branch == "arena.0" {
                theirs.as_object_mut().unwrap().remove("extent_hooks");
                theirs.as_object_mut().unwrap().insert("name".into(), "auto_0".into());
            }
            theirs
        };
        for branch in ["arenas", "config", "opt", "arena.0"] {
            let (mut theirs, mut ours) = (read(branch), below(&Linked, branch));
            // Other tests make arenas. Ours must equal theirs if no arena was made in between.
            while read(branch) != theirs {
                (theirs, ours) = (read(branch), below(&Linked, branch));
            }
            assert_eq!(ours, Some(theirs), "{branch}");
        }
    }

    #[test]
    fn a_missing_arena_hides_none_behind_it() {
        let namespace: &dyn Namespace = &Linked;
        let create = namespace.find("arenas.create").unwrap();
        let [gone, stays] = [0; 2].map(|_| namespace.create(&create).unwrap());
        namespace.act(&namespace.find(&format!("arena.{gone}.destroy")).unwrap()).unwrap();
        namespace.write(&namespace.find("epoch").unwrap(), Value::U64(1)).unwrap();
        let arenas = below(namespace, "stats.arenas").unwrap();
        assert!(arenas.get(stays.to_string()).is_some());
        assert!(arenas.get("4096").is_none());
    }

    #[test]
    fn no_addresses_and_no_threads() {
        let arena = below(&Linked, "arena.0").unwrap();
        assert!(arena.get("extent_hooks").is_none() && arena.get("purge").is_none());
        assert_eq!(below(&Linked, "thread"), None);
        for wrong in ["", "nothing", "version", "stats.", "arena.x", "arena.99999"] {
            assert_eq!(below(&Linked, wrong), None, "{wrong}");
        }
    }
}
