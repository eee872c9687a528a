//! Inputs that are generated: problems for the solver, sources for the compilers.

use std::fmt::Write;

/// Problems that ask for two factors of a prime, so there is no solution. The solver bit-blasts
/// each problem anew, and that allocates. Widths are 8 to 11 bits.
pub(crate) fn factors(percent: u32) -> String {
    let mut text = String::from("(set-logic QF_BV)\n");
    let mut from = 1 << 15;
    for problem in 0..(64 * percent / 100).max(1) {
        let width = 8 + problem % 4;
        let prime = next_prime(from.max(1 << (2 * width - 1)));
        from = prime + 1;
        let _ = writeln!(
            text,
            "(push)\n(declare-const a (_ BitVec {width}))\n(declare-const b (_ BitVec {width}))\n\
             (assert (= (bvmul ((_ zero_extend {width}) a) ((_ zero_extend {width}) b)) \
             (_ bv{prime} {})))\n(check-sat)\n(pop)",
            2 * width
        );
        if problem % 4 == 3 {
            from = (1 << 15) + 40 * problem;
        }
    }
    text
}

fn next_prime(from: u32) -> u32 {
    let is_prime =
        |number: &u32| (2..).take_while(|d| d * d <= *number).all(|d| !number.is_multiple_of(d));
    (from..).find(is_prime).unwrap_or(2)
}

/// The script `programs/rows.sql`, with its number of rows before it.
pub(crate) fn rows(script: &str, percent: u32) -> String {
    let rows = 1200 * percent;
    format!("CREATE TABLE size(rows);\nINSERT INTO size VALUES({rows});\n{script}")
}

/// C++ that uses templates of the standard library with types of its own.
pub(crate) fn shapes(percent: u32) -> String {
    let mut text = String::from(
        "#include <algorithm>\n#include <map>\n#include <memory>\n#include <string>\n\
         #include <unordered_map>\n#include <vector>\n",
    );
    for i in 0..(4 * percent / 100).max(1) {
        let _ = writeln!(
            text,
            "struct Shape{i} {{ std::string name; std::vector<int> sides; double area() const; }};\n\
             double Shape{i}::area() const {{\n\
               double sum = {i};\n\
               for (int side : sides) sum += side * {i}.5;\n\
               return sum;\n\
             }}\n\
             double total{i}(const std::vector<Shape{i}> &shapes) {{\n\
               std::map<std::string, std::vector<std::shared_ptr<Shape{i}>>> by_name;\n\
               std::unordered_map<std::string, Shape{i}> last;\n\
               for (const auto &shape : shapes) {{\n\
                 by_name[shape.name].push_back(std::make_shared<Shape{i}>(shape));\n\
                 last[shape.name + \"{i}\"] = shape;\n\
               }}\n\
               double sum = last.size();\n\
               for (auto &[name, those] : by_name) {{\n\
                 std::sort(those.begin(), those.end(), [](const auto &a, const auto &b) {{\n\
                   return a->area() < b->area();\n\
                 }});\n\
                 sum += those.front()->area() + name.size();\n\
               }}\n\
               return sum;\n\
             }}"
        );
    }
    text
}

/// Plain C: loops, switches, structures, functions that call each other.
pub(crate) fn functions(percent: u32) -> String {
    let mut text = String::from("struct pair { long a, b; struct pair *next; };\n");
    for i in 0..(150 * percent / 100).max(2) {
        let call = if i == 0 { "b".to_owned() } else { format!("function{}(p, b, n - 1)", i - 1) };
        let _ = writeln!(
            text,
            "long function{i}(struct pair *p, long a, int n) {{\n\
               long b = a ^ {i}, table[16] = {{1, 2, {i}}};\n\
               for (int i = 0; i < n; i++) {{\n\
                 switch ((a + i) % 7) {{\n\
                   case 0: b += table[i & 15] * {i}; break;\n\
                   case 1: b ^= a << (i & 7); break;\n\
                   case 2: if (p) {{ p->a += b; p = p->next; }} break;\n\
                   case 3: table[b & 15] += i; break;\n\
                   case 4: if (n > 0) b -= {call}; break;\n\
                   default: b = b * 31 + table[(i + {i}) & 15];\n\
                 }}\n\
                 for (int j = 0; j < 16; j++) table[j] = table[j] * 3 + (b >> j);\n\
               }}\n\
               return p ? p->b + b : b;\n\
             }}"
        );
    }
    text
}

/// A Rust library: derives, generics, formatting, collections.
pub(crate) fn modules(percent: u32) -> String {
    let mut text = String::from("#![allow(dead_code)]\n");
    for i in 0..(8 * percent / 100).max(1) {
        let _ = writeln!(
            text,
            "pub mod m{i} {{\n\
             use std::collections::{{BTreeMap, HashMap}};\n\
             #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]\n\
             pub struct Item {{ name: String, parts: Vec<u64>, next: Option<Box<Item>> }}\n\
             pub fn run(seed: u64) -> u64 {{\n\
               let mut all = BTreeMap::new();\n\
               let mut seen: HashMap<String, Item> = HashMap::new();\n\
               for i in 0..50u64 {{\n\
                 let parts: Vec<u64> = (0..i % 9).map(|j| j.wrapping_mul(seed ^ {i})).collect();\n\
                 let next = seen.get(&format!(\"{{}}\", i / 2)).cloned().map(Box::new);\n\
                 let item = Item {{ name: format!(\"item {{i}}\"), parts, next }};\n\
                 seen.insert(format!(\"{{i}}\"), item.clone());\n\
                 all.insert(item, i);\n\
               }}\n\
               let text = format!(\"{{:?}}\", all);\n\
               text.bytes().fold(seed, |sum, byte| sum.wrapping_mul({i}) + u64::from(byte))\n\
             }}\n}}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{factors, functions, modules, next_prime, rows, shapes};

    #[test]
    fn the_solver_gets_primes_that_fit_their_width() {
        assert_eq!((next_prime(24), next_prime(1 << 15)), (29, 32771));
        let text = factors(100);
        assert_eq!(text.matches("(check-sat)").count(), 64);
        assert!(text.contains("(_ bv32771 16)"));
        for line in text.lines().filter(|line| line.starts_with("(assert")) {
            let (_, after) = line.split_once("(_ bv").unwrap();
            let numbers: Vec<u64> =
                after.split([' ', ')']).filter_map(|word| word.parse().ok()).collect();
            assert!(numbers[0] < 1 << numbers[1], "{line}");
        }
    }

    #[test]
    fn inputs_grow_with_the_scale() {
        let grows = |make: fn(u32) -> String| make(100).len() > 2 * make(10).len();
        assert!(grows(factors) && grows(shapes) && grows(functions) && grows(modules));
        assert!(rows("SELECT 1;", 10).contains("VALUES(12000);\nSELECT 1;"));
    }
}
