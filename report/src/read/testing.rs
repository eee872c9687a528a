//! Makes pprof files for tests.

use std::io::Write;

use prost::Message;

use super::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

/// A pprof file in the form of the profiler's own.
pub(crate) struct File {
    /// The messages, for changes that have no method.
    pub(crate) profile: Profile,
}

impl Default for File {
    fn default() -> File {
        let profile = Profile { string_table: vec![String::new()], ..Profile::default() };
        let mut file = File { profile };
        for (kind, unit) in [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ] {
            let kind = ValueType { kind: file.string(kind), unit: file.string(unit) };
            file.profile.sample_type.push(kind);
        }
        file.profile.period = 1;
        file
    }
}

impl File {
    /// The index of a string.
    pub(crate) fn string(&mut self, text: &str) -> i64 {
        let strings = &mut self.profile.string_table;
        let at = strings.iter().position(|known| known == text).unwrap_or_else(|| {
            strings.push(text.to_owned());
            strings.len() - 1
        });
        at as i64
    }

    /// Adds a mapping, which later locations belong to if they lie in it.
    pub(crate) fn mapping(mut self, start: u64, limit: u64, file: &str, build_id: &str) -> File {
        let mapping = Mapping {
            id: self.profile.mapping.len() as u64 + 1,
            memory_start: start,
            memory_limit: limit,
            filename: self.string(file),
            build_id: self.string(build_id),
            ..Mapping::default()
        };
        self.profile.mapping.push(mapping);
        self
    }

    /// Adds a comment.
    pub(crate) fn comment(mut self, text: &str) -> File {
        let comment = self.string(text);
        self.profile.comment.push(comment);
        self
    }

    fn location(&mut self, address: u64) -> u64 {
        let known = self.profile.location.iter().find(|location| location.address == address);
        if let Some(location) = known {
            return location.id;
        }
        let mappings = self.profile.mapping.iter();
        let mapping_id = mappings
            .filter(|mapping| (mapping.memory_start..mapping.memory_limit).contains(&address))
            .map(|mapping| mapping.id)
            .next();
        let id = self.profile.location.len() as u64 + 1;
        let mapping_id = mapping_id.unwrap_or(0);
        self.profile.location.push(Location { id, mapping_id, address, line: Vec::new() });
        id
    }

    /// A location with a function, as in a file that others symbolised.
    fn named(&mut self, name: &str) -> u64 {
        let place = self.string(name);
        let known = self.profile.function.iter().find(|function| function.name == place);
        if let Some(function) = known {
            return function.id;
        }
        let id = self.profile.function.len() as u64 + 1;
        // Names with namespaces are those of Rust.
        let ending = if name.contains("::") { "rs" } else { "c" };
        let filename = self.string(&format!("{name}.{ending}"));
        self.profile.function.push(Function { id, name: place, filename, ..Function::default() });
        let line = vec![Line { function_id: id, line: id as i64 }];
        let location = Location { id, address: 0x1000 * id, line, ..Location::default() };
        self.profile.location.push(location);
        id
    }

    fn sample(mut self, location_id: Vec<u64>, values: &[i64], labels: &[(&str, i64)]) -> File {
        let mut label = Vec::new();
        for (key, num) in labels {
            label.push(Label { key: self.string(key), num: *num, ..Label::default() });
        }
        let value = values.to_vec();
        self.profile.sample.push(Sample { location_id, value, label });
        self
    }

    /// Adds a sample of addresses, innermost first.
    pub(crate) fn stack(self, stack: &[u64], values: &[i64], labels: &[(&str, i64)]) -> File {
        let mut file = self;
        let ids = stack.iter().map(|address| file.location(*address)).collect();
        file.sample(ids, values, labels)
    }

    /// Adds `blocks` allocations of `size` bytes, of which `live` are not freed. The path is of
    /// names, outermost first: `main > f`.
    pub(crate) fn path(self, path: &str, size: i64, blocks: i64, live: i64) -> File {
        let mut file = self;
        let mut ids: Vec<u64> = path.split(" > ").map(|name| file.named(name)).collect();
        ids.reverse();
        let values = [blocks, blocks * size, live, live * size];
        file.sample(ids, &values, &[("bytes", size)])
    }

    /// Adds a label with a string to the last sample.
    pub(crate) fn text_label(mut self, key: &str, value: &str) -> File {
        let label = Label { key: self.string(key), str: self.string(value), ..Label::default() };
        self.profile.sample.last_mut().expect("a sample").label.push(label);
        self
    }

    /// The bytes of the file, not compressed.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.profile.encode_to_vec()
    }

    /// The profile that is read from the file.
    pub(crate) fn read(&self) -> crate::profile::Profile {
        super::read(&gzip(&self.encode())).expect("a profile")
    }
}

/// Compresses as the profiler does.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}
