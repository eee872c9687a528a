//! The modules of a folder import each other in no circle. Each crate has this rule; the core's own
//! [order](super::order) says besides which way its imports go.

use std::collections::{BTreeMap, BTreeSet};

use super::order::{imports, module_path};
use super::source::Source;

/// Rows that describe the table to which they belong: these circles cannot be opened.
const SELF_DESCRIPTION: [&str; 2] =
    ["namespace/src/rows/config.rs", "namespace/src/rows/self_description.rs"];

/// The folder (with the crate's path before it) and the module of that folder.
type Place = (String, String);

/// Which modules of a folder each of them imports, with a file and a line that do.
#[derive(Default)]
pub struct Circles {
    modules: BTreeSet<Place>,
    imports: BTreeMap<Place, BTreeMap<String, String>>,
}

impl Circles {
    /// Adds the imports of one file. Files of test code have none.
    pub fn add(&mut self, source: &Source, is_test: bool) {
        let is_left_out = is_test || SELF_DESCRIPTION.contains(&source.path.as_str());
        let Some((root, path)) = source.path.split_once("/src/").filter(|_| !is_left_out) else {
            return;
        };
        let own = module_path(path);
        let place = |path: &[String], depth: usize| {
            let folder = [&[root.to_owned()], &path[..depth]].concat().join("/");
            path.get(depth).map(|module| (folder, module.clone()))
        };
        self.modules.extend((0..own.len()).filter_map(|depth| place(&own, depth)));
        for (at, target) in imports(source, &own) {
            let common = own.iter().zip(&target).take_while(|(own, target)| own == target).count();
            let (Some(own), Some((_, target))) = (place(&own, common), place(&target, common))
            else {
                continue;
            };
            let line = || format!("{}:{}", source.path, source.line_of(at));
            self.imports.entry(own).or_default().entry(target).or_insert_with(line);
        }
    }

    /// Returns a line for each import that is part of a circle.
    pub fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for ((folder, module), targets) in &self.imports {
            for (target, line) in targets {
                let imported = (folder.clone(), target.clone());
                if self.modules.contains(&imported) && self.reaches(imported, module) {
                    let text = format!("{line}: {module} imports {target}, which imports {module}");
                    findings.push(text);
                }
            }
        }
        findings
    }

    /// Whether a module imports another one of its folder, at once or through others.
    fn reaches(&self, from: Place, module: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(place) = open.pop() {
            if place.1 == module {
                return true;
            }
            for target in self.imports.get(&place).into_iter().flatten() {
                let next = (place.0.clone(), target.0.clone());
                if self.modules.contains(&next) && seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let mut circles = Circles::default();
        for (path, text) in files {
            circles.add(&Source::new(path, text), path.ends_with("_test.rs"));
        }
        circles.findings()
    }

    #[test]
    fn circles_of_files_and_folders_are_found() {
        let two = [("x/src/a.rs", "use crate::b::B;"), ("x/src/b.rs", "\nuse super::a::A;")];
        let expected = [
            "x/src/a.rs:1: a imports b, which imports a",
            "x/src/b.rs:2: b imports a, which imports b",
        ];
        assert_eq!(findings(&two), expected);
        let three = [
            ("x/src/deep/a.rs", "use super::b;"),
            ("x/src/deep/b.rs", "fn f() { super::c::g() }"),
            ("x/src/deep/c.rs", "use crate::deep::{d, a::A};"),
        ];
        assert_eq!(findings(&three).len(), 3);
        let folders =
            [("x/src/a/one.rs", "use crate::b::two;"), ("x/src/b/three.rs", "use crate::a;")];
        assert_eq!(findings(&folders).len(), 2);
    }

    #[test]
    fn other_imports_make_no_circle() {
        let fine = |files: &[(&str, &str)]| assert_eq!(findings(files), [""; 0]);
        fine(&[("x/src/a.rs", "use crate::b;"), ("y/src/b.rs", "use crate::a;")]);
        fine(&[("x/src/a.rs", "use crate::b;"), ("x/src/b.rs", "#[cfg(test)]\nuse crate::a;")]);
        fine(&[("x/src/a.rs", "use crate::b;"), ("x/src/b_test.rs", "use crate::a;")]);
        fine(&[
            ("x/src/a/mod.rs", "use self::b;"),
            ("x/src/a/b.rs", "use super::A;\nuse crate::a;"),
        ]);
        fine(&[("x/src/a.rs", "use crate::b;"), ("x/src/b.rs", "use crate::c;")]);
    }
}
