//! Who allocated on behalf of whom. Functions that call each other are put together as a cycle.
//!
//! A function or a cycle has the bytes of a chain once, also where it appears in the chain several
//! times. Calls are counted each time. Between two functions that are not in one cycle there is at
//! most one call in a chain.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::blocks::{Block, Sized};
use super::components::cycles;

/// What one function allocated through another one.
#[derive(Clone, Copy, Debug, Default)]
struct Arc {
    sized: Sized,
    calls: i64,
}

/// The arcs of one function.
#[derive(Clone, Debug, Default)]
struct Ends {
    arcs: Vec<(usize, usize)>,
    made: i64,
    received: i64,
}

/// A function, or all functions of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Vertex {
    /// The function of this number.
    Function(usize),
    /// The cycle of this number, from 0.
    Cycle(usize),
}

/// A caller or a callee of a vertex.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relative {
    /// The function.
    pub(super) function: usize,
    /// What was allocated; nothing if both are in one cycle.
    pub(super) sized: Option<Sized>,
    /// Calls between the two.
    pub(super) calls: i64,
    /// All calls that the caller made, or all calls of the callee.
    pub(super) total: i64,
}

/// Callers, callees and numbers of a function or a cycle.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Which one.
    pub(super) vertex: Vertex,
    /// What it allocated itself.
    pub(super) own: Sized,
    /// Bytes that it allocated with what it called. For a function of a cycle: its own.
    pub(super) bytes: i64,
    /// Calls from others.
    pub(super) called: i64,
    /// Calls of a function by itself, or between the functions of a cycle.
    pub(super) recursive: i64,
    /// The callers, by decreasing bytes.
    pub(super) ancestors: Vec<Relative>,
    /// The callees, by decreasing bytes.
    pub(super) descendants: Vec<Relative>,
}

/// The graph of all chains.
pub(super) struct Graph {
    own: BTreeMap<usize, Sized>,
    arcs: BTreeMap<(usize, usize), Arc>,
    /// The arcs of each function, and the calls that it made and received.
    ends: BTreeMap<usize, Ends>,
    /// Calls of functions by themselves.
    recursive: BTreeMap<usize, i64>,
    cycles: Vec<Vec<usize>>,
    cycle_of: HashMap<usize, usize>,
    /// Bytes of all chains that contain the vertex.
    bytes: BTreeMap<Vertex, i64>,
    /// The vertices, in the order of their indices.
    ranks: Vec<Vertex>,
}

impl Graph {
    /// Makes the graph of all blocks.
    pub(super) fn new(blocks: &[Block]) -> Graph {
        let mut graph = Graph {
            own: BTreeMap::new(),
            arcs: BTreeMap::new(),
            ends: BTreeMap::new(),
            recursive: BTreeMap::new(),
            cycles: Vec::new(),
            cycle_of: HashMap::new(),
            bytes: BTreeMap::new(),
            ranks: Vec::new(),
        };
        blocks.iter().for_each(|block| graph.add(block));
        graph.note_ends();
        graph.find_cycles();
        blocks.iter().for_each(|block| graph.add_bytes(block));
        graph.rank();
        graph
    }

    fn add(&mut self, block: &Block) {
        let sized = Sized::of(block.size, block.cell);
        for (at, link) in block.chain.iter().enumerate() {
            let own = self.own.entry(link.function).or_default();
            if at == 0 {
                own.add(&sized);
            }
            let Some(caller) = block.chain.get(at + 1) else { continue };
            let calls = block.cell.allocs;
            if caller.function == link.function {
                let recursive = self.recursive.entry(link.function).or_default();
                *recursive = recursive.saturating_add(calls);
                continue;
            }
            let key = (caller.function, link.function);
            let arc = self.arcs.entry(key).or_default();
            arc.calls = arc.calls.saturating_add(calls);
            arc.sized.add(&sized);
        }
    }

    fn note_ends(&mut self) {
        for (key, arc) in &self.arcs {
            let caller = self.ends.entry(key.0).or_default();
            caller.arcs.push(*key);
            caller.made = caller.made.saturating_add(arc.calls);
            let callee = self.ends.entry(key.1).or_default();
            callee.arcs.push(*key);
            callee.received = callee.received.saturating_add(arc.calls);
        }
    }

    /// Numbers the cycles and their functions by decreasing bytes.
    fn find_cycles(&mut self) {
        let own = |member: &usize| self.own[member].cell.bytes;
        let mut found = cycles(self.arcs.keys().copied());
        found.iter_mut().for_each(|members| members.sort_by_key(|it| (Reverse(own(it)), *it)));
        let all = |members: &Vec<usize>| members.iter().map(own).sum::<i64>();
        found.sort_by_key(|members| (Reverse(all(members)), members[0]));
        for (cycle, members) in found.iter().enumerate() {
            self.cycle_of.extend(members.iter().map(|member| (*member, cycle)));
        }
        self.cycles = found;
    }

    fn add_bytes(&mut self, block: &Block) {
        let functions = block.chain.iter().map(|link| link.function);
        let vertices: BTreeSet<Vertex> = functions.map(|function| self.merged(function)).collect();
        for vertex in vertices {
            *self.bytes.entry(vertex).or_default() += block.cell.bytes;
        }
    }

    /// The function, or its cycle.
    fn merged(&self, function: usize) -> Vertex {
        self.cycle_of.get(&function).map_or(Vertex::Function(function), |it| Vertex::Cycle(*it))
    }

    /// Orders all vertices. A function of a cycle has the place of its own bytes.
    fn rank(&mut self) {
        let functions = self.own.keys().map(|function| Vertex::Function(*function));
        let cycles = (0..self.cycles.len()).map(Vertex::Cycle);
        let mut ranks: Vec<Vertex> = cycles.chain(functions).collect();
        ranks.sort_by_key(|vertex| Reverse(self.ranking_bytes(*vertex)));
        self.ranks = ranks;
    }

    fn ranking_bytes(&self, vertex: Vertex) -> i64 {
        match (vertex, self.bytes.get(&vertex)) {
            (_, Some(bytes)) => *bytes,
            (Vertex::Function(function), None) => self.own[&function].cell.bytes,
            (Vertex::Cycle(_), None) => 0,
        }
    }

    /// All vertices, in the order of their indices.
    pub(super) fn vertices(&self) -> &[Vertex] {
        &self.ranks
    }

    /// The functions of a cycle, by decreasing bytes of their own.
    pub(super) fn members(&self, cycle: usize) -> &[usize] {
        &self.cycles[cycle]
    }

    /// The cycle that a function belongs to.
    pub(super) fn cycle_of(&self, function: usize) -> Option<usize> {
        self.cycle_of.get(&function).copied()
    }

    /// What a function allocated itself.
    pub(super) fn own(&self, function: usize) -> Sized {
        self.own[&function]
    }

    /// Everything about one vertex.
    pub(super) fn entry(&self, vertex: Vertex) -> Entry {
        let functions = match &vertex {
            Vertex::Function(function) => std::slice::from_ref(function),
            Vertex::Cycle(cycle) => self.members(*cycle),
        };
        let is_part = |function: usize| match vertex {
            Vertex::Function(own) => own == function,
            Vertex::Cycle(cycle) => self.cycle_of(function) == Some(cycle),
        };
        let (mut own, mut recursive) = (Sized::default(), 0i64);
        for function in functions {
            own.add(&self.own[function]);
            let calls = self.recursive.get(function).copied().unwrap_or(0);
            recursive = recursive.saturating_add(calls);
        }
        let ends = functions.iter().filter_map(|function| self.ends.get(function));
        let keys: BTreeSet<(usize, usize)> = ends.flat_map(|ends| ends.arcs.clone()).collect();
        let (mut callers, mut callees) = (BTreeMap::new(), BTreeMap::new());
        for (key, arc) in keys.iter().map(|key| (key, &self.arcs[key])) {
            match (is_part(key.0), is_part(key.1)) {
                (true, true) => recursive = recursive.saturating_add(arc.calls),
                (true, false) => join(&mut callees, key.1, arc),
                (false, _) => join(&mut callers, key.0, arc),
            }
        }
        let called = callers.values().map(|arc: &Arc| arc.calls).fold(0, i64::saturating_add);
        let ancestors = self.relatives(vertex, callers, |ends| ends.made);
        let descendants = self.relatives(vertex, callees, |ends| ends.received);
        let bytes = self.ranking_bytes(vertex);
        Entry { vertex, own, bytes, called, recursive, ancestors, descendants }
    }

    fn relatives(
        &self,
        vertex: Vertex,
        arcs: BTreeMap<usize, Arc>,
        total: impl Fn(&Ends) -> i64,
    ) -> Vec<Relative> {
        let cycle = match vertex {
            Vertex::Function(function) => self.cycle_of(function),
            Vertex::Cycle(cycle) => Some(cycle),
        };
        let relative = |(function, arc): (usize, Arc)| {
            let is_within = cycle.is_some() && cycle == self.cycle_of(function);
            let sized = (!is_within).then_some(arc.sized);
            Relative { function, sized, calls: arc.calls, total: total(&self.ends[&function]) }
        };
        let mut out: Vec<Relative> = arcs.into_iter().map(relative).collect();
        out.sort_by_key(|it| Reverse((it.sized.map_or(-1, |sized| sized.cell.bytes), it.calls)));
        out
    }
}

fn join(into: &mut BTreeMap<usize, Arc>, function: usize, arc: &Arc) {
    let joined = into.entry(function).or_default();
    joined.sized.add(&arc.sized);
    joined.calls = joined.calls.saturating_add(arc.calls);
}
