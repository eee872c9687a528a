//! Who allocated on behalf of whom. Functions that call each other are put together as a cycle.
//!
//! A function or a cycle has the bytes of a chain once, also where it appears in the chain several
//! times. Calls are counted each time. Between two functions that are not in one cycle there is at
//! most one call in a chain.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::blocks::{Block, Sized};
use super::components::cycles;

/// What one function allocated through another one.
#[derive(Clone, Copy, Debug, Default)]
struct Arc {
    sized: Sized,
    calls: i64,
}

impl Arc {
    fn add(&mut self, other: &Arc) {
        self.sized.add(&other.sized);
        self.calls = self.calls.saturating_add(other.calls);
    }
}

/// The caller and the callee of an arc.
type Key = (usize, usize);

/// What is known of one function. Its number is its place.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Whether a chain has it.
    is_there: bool,
    /// What it allocated itself.
    own: Sized,
    /// Its calls of itself.
    recursive: i64,
    /// Its cycle.
    cycle: Option<usize>,
    /// Its index.
    index: usize,
    /// Its arcs to callees, in [`Graph::arcs`].
    callees: Range<usize>,
    /// Its arcs from callers, in [`Graph::by_callee`].
    callers: Range<usize>,
    /// The calls that it made.
    made: i64,
    /// The calls of it.
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
    nodes: Vec<Node>,
    /// All arcs, in the order of the callers, then of the callees.
    arcs: Vec<(Key, Arc)>,
    /// Their places, in the order of the callees, then of the callers.
    by_callee: Vec<usize>,
    cycles: Vec<Vec<usize>>,
    /// The index of each cycle.
    cycle_indices: Vec<usize>,
    /// Bytes of all chains that contain the vertex.
    bytes: BTreeMap<Vertex, i64>,
    /// The vertices, in the order of their indices.
    ranks: Vec<Vertex>,
}

impl Graph {
    /// Makes the graph of all blocks.
    pub(super) fn new(blocks: &[Block]) -> Graph {
        let links = blocks.iter().flat_map(|block| &block.chain);
        let count = links.map(|link| link.function + 1).max().unwrap_or(0);
        let mut graph = Graph {
            nodes: vec![Node::default(); count],
            arcs: Vec::new(),
            by_callee: Vec::new(),
            cycles: Vec::new(),
            cycle_indices: Vec::new(),
            bytes: BTreeMap::new(),
            ranks: Vec::new(),
        };
        blocks.iter().for_each(|block| graph.add(block));
        graph.arcs = arcs(blocks);
        graph.note_ends();
        graph.find_cycles();
        blocks.iter().for_each(|block| graph.add_bytes(block));
        graph.rank();
        graph
    }

    fn add(&mut self, block: &Block) {
        for (at, link) in block.chain.iter().enumerate() {
            let node = &mut self.nodes[link.function];
            node.is_there = true;
            if at == 0 {
                node.own.add(&Sized::of(block.size, block.cell));
            }
            let caller = block.chain.get(at + 1);
            if caller.is_some_and(|caller| caller.function == link.function) {
                node.recursive = node.recursive.saturating_add(block.cell.allocs);
            }
        }
    }

    fn note_ends(&mut self) {
        let mut by_callee: Vec<usize> = (0..self.arcs.len()).collect();
        by_callee.sort_by_key(|at| self.arcs[*at].0.1);
        for (place, at) in by_callee.iter().enumerate() {
            let ((_, callee), arc) = &self.arcs[*at];
            let node = &mut self.nodes[*callee];
            lengthen(&mut node.callers, place);
            node.received = node.received.saturating_add(arc.calls);
        }
        for (place, ((caller, _), arc)) in self.arcs.iter().enumerate() {
            let node = &mut self.nodes[*caller];
            lengthen(&mut node.callees, place);
            node.made = node.made.saturating_add(arc.calls);
        }
        self.by_callee = by_callee;
    }

    /// Numbers the cycles and their functions by decreasing bytes.
    fn find_cycles(&mut self) {
        let own = |member: &usize| self.nodes[*member].own.cell.bytes;
        let mut found = cycles(self.arcs.iter().map(|(key, _)| *key));
        found.iter_mut().for_each(|members| members.sort_by_key(|it| (Reverse(own(it)), *it)));
        let all = |members: &Vec<usize>| members.iter().map(own).sum::<i64>();
        found.sort_by_key(|members| (Reverse(all(members)), members[0]));
        for (cycle, members) in found.iter().enumerate() {
            members.iter().for_each(|member| self.nodes[*member].cycle = Some(cycle));
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
        self.cycle_of(function).map_or(Vertex::Function(function), Vertex::Cycle)
    }

    /// Orders all vertices. A function of a cycle has the place of its own bytes. Of functions with
    /// equal sums those come first that allocate less themselves, so `main` does before what it
    /// calls.
    fn rank(&mut self) {
        let functions = (0..self.nodes.len()).filter(|function| self.nodes[*function].is_there);
        let functions = functions.map(Vertex::Function);
        let cycles = (0..self.cycles.len()).map(Vertex::Cycle);
        let mut ranks: Vec<Vertex> = cycles.chain(functions).collect();
        ranks.sort_by_key(|vertex| (Reverse(self.ranking_bytes(*vertex)), self.own_bytes(*vertex)));
        self.cycle_indices = vec![0; self.cycles.len()];
        for (index, vertex) in ranks.iter().enumerate() {
            match vertex {
                Vertex::Function(function) => self.nodes[*function].index = index,
                Vertex::Cycle(cycle) => self.cycle_indices[*cycle] = index,
            }
        }
        self.ranks = ranks;
    }

    fn ranking_bytes(&self, vertex: Vertex) -> i64 {
        self.bytes.get(&vertex).copied().unwrap_or_else(|| self.own_bytes(vertex))
    }

    /// The bytes that a function allocates itself.
    fn own_bytes(&self, vertex: Vertex) -> i64 {
        match vertex {
            Vertex::Function(function) => self.nodes[function].own.cell.bytes,
            Vertex::Cycle(_) => 0,
        }
    }

    /// All vertices, in the order of their indices.
    pub(super) fn vertices(&self) -> &[Vertex] {
        &self.ranks
    }

    /// The index of a vertex.
    pub(super) fn index(&self, vertex: Vertex) -> usize {
        match vertex {
            Vertex::Function(function) => self.nodes[function].index,
            Vertex::Cycle(cycle) => self.cycle_indices[cycle],
        }
    }

    /// The functions of a cycle, by decreasing bytes of their own.
    pub(super) fn members(&self, cycle: usize) -> &[usize] {
        &self.cycles[cycle]
    }

    /// The cycle that a function belongs to.
    pub(super) fn cycle_of(&self, function: usize) -> Option<usize> {
        self.nodes[function].cycle
    }

    /// What a function allocated itself.
    pub(super) fn own(&self, function: usize) -> Sized {
        self.nodes[function].own
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
        let (mut callers, mut callees) = (Vec::new(), Vec::new());
        for node in functions.iter().map(|function| &self.nodes[*function]) {
            own.add(&node.own);
            recursive = recursive.saturating_add(node.recursive);
            for ((_, callee), arc) in &self.arcs[node.callees.clone()] {
                match is_part(*callee) {
                    true => recursive = recursive.saturating_add(arc.calls),
                    false => callees.push((*callee, arc)),
                }
            }
            let into = self.by_callee[node.callers.clone()].iter().map(|at| &self.arcs[*at]);
            let others = into.filter(|((caller, _), _)| !is_part(*caller));
            callers.extend(others.map(|((caller, _), arc)| (*caller, arc)));
        }
        let called = callers.iter().map(|(_, arc)| arc.calls).fold(0, i64::saturating_add);
        let ancestors = self.relatives(vertex, callers, |node| node.made);
        let descendants = self.relatives(vertex, callees, |node| node.received);
        let bytes = self.ranking_bytes(vertex);
        Entry { vertex, own, bytes, called, recursive, ancestors, descendants }
    }

    fn relatives(
        &self,
        vertex: Vertex,
        arcs: Vec<(usize, &Arc)>,
        total: impl Fn(&Node) -> i64,
    ) -> Vec<Relative> {
        let cycle = match vertex {
            Vertex::Function(function) => self.cycle_of(function),
            Vertex::Cycle(cycle) => Some(cycle),
        };
        let relative = |(function, arc): (usize, Arc)| {
            let node = &self.nodes[function];
            let sized = (cycle.is_none() || cycle != node.cycle).then_some(arc.sized);
            Relative { function, sized, calls: arc.calls, total: total(node) }
        };
        let mut out: Vec<Relative> = joined(arcs).into_iter().map(relative).collect();
        out.sort_by_key(|it| Reverse((it.sized.map_or(-1, |sized| sized.cell.bytes), it.calls)));
        out
    }
}

/// The arcs of all chains, in their order. Calls of a function by itself are none.
fn arcs(blocks: &[Block]) -> Vec<(Key, Arc)> {
    let mut found: Vec<(Key, usize)> = Vec::new();
    for (place, block) in blocks.iter().enumerate() {
        let calls = block.chain.windows(2).map(|pair| (pair[1].function, pair[0].function));
        let others = calls.filter(|(caller, callee)| caller != callee);
        found.extend(others.map(|key| (key, place)));
    }
    found.sort_unstable();
    let parts = found.chunk_by(|one, other| one.0 == other.0);
    let arc = |part: &[(Key, usize)]| {
        let mut arc = Arc::default();
        for block in part.iter().map(|(_, place)| &blocks[*place]) {
            let sized = Sized::of(block.size, block.cell);
            arc.add(&Arc { sized, calls: block.cell.allocs });
        }
        (part[0].0, arc)
    };
    parts.map(arc).collect()
}

/// Puts the arcs to each function together, in the order of the functions.
fn joined(mut arcs: Vec<(usize, &Arc)>) -> Vec<(usize, Arc)> {
    arcs.sort_by_key(|(function, _)| *function);
    let mut out: Vec<(usize, Arc)> = Vec::with_capacity(arcs.len());
    for (function, arc) in arcs {
        match out.last_mut().filter(|last| last.0 == function) {
            Some((_, joined)) => joined.add(arc),
            None => out.push((function, *arc)),
        }
    }
    out
}

/// Adds a place, which is behind all others, to a range.
fn lengthen(range: &mut Range<usize>, place: usize) {
    let start = if range.start == range.end { place } else { range.start };
    *range = start..place + 1;
}
