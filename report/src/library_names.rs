//! The names that standard libraries and known containers have in functions and types, as compilers
//! write them. A new version of a library may need new lines here, and nothing else.

/// What the names of the files of C and C++ libraries begin with.
pub(crate) const SYSTEM_LIBRARIES: [&str; 13] = [
    "libc.so.",
    "libc-2.",
    "libm.so.",
    "libdl.so.",
    "libpthread.so.",
    "librt.so.",
    "ld-linux",
    "ld-musl-",
    "ld-2.",
    "libstdc++.so.",
    "libc++.so.",
    "libc++abi.so.",
    "libgcc_s.so.",
];
/// The outer end of every stack of a Rust program, or of one of its threads.
pub(crate) const RUST_BEGIN: &str = "__rust_begin_short_backtrace";
/// What the names of functions of standard libraries of any language begin with, without a leading
/// `<`.
pub(crate) const LIBRARIES: [&str; 6] = [
    // Names of C++ that nothing could demangle.
    "_ZSt",
    "_ZNSt",
    "_ZNKSt",
    "_ZN9__gnu_cxx",
    "std::",
    "__gnu_cxx::",
];
/// As [`LIBRARIES`], of Rust only: a program in another language may have such namespaces.
pub(crate) const RUST_LIBRARIES: [&str; 11] = [
    "alloc::",
    "core::",
    "hashbrown::",
    "indexmap::",
    "smallvec::",
    // Methods of Rust's own types: `<str>::repeat`, `<[T]>::to_vec`.
    "str>",
    "[",
    "fn(",
    "dyn core::",
    "dyn std::",
    "impl [",
];
/// What the names of such functions begin with when debug information has no more of them.
pub(crate) const BARE: [&str; 3] = ["_M_", "_S_", "__invoke"];
/// As [`BARE`], of Rust only.
pub(crate) const RUST_BARE: [&str; 3] = ["exchange_malloc", "map_fold<", "call_once<"];
/// What the names of functions begin with that make strings.
pub(crate) const STRINGS: [&str; 4] =
    ["alloc::string::", "alloc::str::", "alloc::fmt::", "str as alloc::borrow::ToOwned"];
/// What the names of functions begin with that delete a block of shared pointers, which has a
/// v-table, or an object with all that belongs to it. They do not tell the type of other blocks.
pub(crate) const SHARED_POINTERS: [&str; 7] = [
    "std::_Sp_counted_",
    "std::__shared_count",
    "std::__shared_ptr<",
    "std::shared_ptr<",
    // Of libc++.
    "std::__shared_weak_count",
    "std::__shared_ptr_emplace<",
    "std::__shared_ptr_pointer<",
];
/// What the last parts of names of functions of C++ begin with that destroy an element of a
/// container. What they free belongs to the element.
pub(crate) const OF_ELEMENTS: [&str; 9] = [
    "~pair",
    "~tuple",
    "destroy<",
    "destroy_at<",
    "__destroy<",
    "__destroy_at<",
    "_Destroy<",
    "_Destroy_n<",
    "__destroy_n<",
];
/// Namespaces inside `std` that a version of a library has, and that programs do not name.
pub(crate) const VERSIONS: [&str; 3] = ["std::__1::", "std::__ndk1::", "std::__cxx11::"];
/// Arguments that are no elements: allocators, hashers, comparisons.
pub(crate) const HELPERS: [&str; 17] = [
    "std::_Select1st<",
    "std::_Identity<",
    "std::__detail::_Select1st",
    "std::__detail::_Identity",
    "std::__detail::_Mod_range_hashing",
    "std::__detail::_Default_ranged_hash",
    "std::__detail::_Prime_rehash_policy",
    "std::__detail::_Hashtable_traits<",
    "alloc::alloc::Global",
    "std::hash::random::RandomState",
    "std::allocator<",
    "std::char_traits<",
    "std::less<",
    "std::hash<",
    "std::equal_to<",
    "std::default_delete<",
    "core::hash::BuildHasherDefault<",
];
/// The containers whose elements are the type of blocks.
pub(crate) const CONTAINERS: [&str; 34] = [
    "Vec",
    "VecDeque",
    "Box",
    "Rc",
    "Arc",
    "HashMap",
    "HashSet",
    "HashTable",
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "LinkedList",
    "IndexMap",
    "IndexSet",
    "SmallVec",
    "vector",
    "basic_string",
    "deque",
    "list",
    "forward_list",
    "map",
    "set",
    "multimap",
    "multiset",
    "unordered_map",
    "unordered_set",
    "unordered_multimap",
    "unordered_multiset",
    "queue",
    "stack",
    "priority_queue",
    "shared_ptr",
    "unique_ptr",
    "function",
];
/// What Rust's compiler calls the states of `async` code, and what they are called here.
pub(crate) const ASYNC: [(&str, &str); 2] =
    [("{async_fn_env#", "{async fn}"), ("{async_block_env#", "{async block}")];
/// The containers that have one element, which may be a closure.
pub(crate) const BOXES: [&str; 3] = ["Box", "Rc", "Arc"];
/// Parts of containers, besides those that begin with `_`. A function of the container itself,
/// farther out, names it better.
pub(crate) const PARTS: [&str; 9] = [
    "RawVec",
    "RawTable",
    "LeafNode",
    "InternalNode",
    "NodeRef",
    "VacantEntry",
    "allocator",
    "allocator_traits",
    "new_allocator",
];

/// The insides of maps and sets of C++, and what these are called.
pub(crate) const TABLES: [(&str, &str, &str); 3] = [
    ("_Hashtable", "unordered_map", "unordered_set"),
    ("_Map_base", "unordered_map", "unordered_set"),
    ("_Rb_tree", "map", "set"),
];
/// As [`TABLES`], of libc++, whose tables have one argument for both key and value.
pub(crate) const VALUE_TABLES: [(&str, &str, &str); 2] =
    [("__tree", "map", "set"), ("__hash_table", "unordered_map", "unordered_set")];
/// What an entry of such a map is.
pub(crate) const VALUES: [&str; 2] = ["std::__value_type<", "std::__hash_value_type<"];
/// Functions of `std` that make an object, and what they return.
pub(crate) const MAKERS: [(&str, &str); 2] =
    [("make_unique", "unique_ptr"), ("make_unique_for_overwrite", "unique_ptr")];
/// Parts of libraries around an element, which is their first argument.
pub(crate) const AROUND: [&str; 6] = [
    "std::_Sp_counted_ptr_inplace<",
    "std::__shared_ptr_emplace<",
    "std::_List_node<",
    "alloc::sync::ArcInner<",
    "alloc::rc::RcInner<",
    "alloc::rc::RcBox<",
];
/// Nodes that containers put into boxes: what their names begin with, the container, and how many
/// of the node's arguments are those of the container.
pub(crate) const NODES: [(&str, &str, usize); 6] = [
    ("alloc::sync::ArcInner<", "Arc", 1),
    ("alloc::rc::RcInner<", "Rc", 1),
    ("alloc::rc::RcBox<", "Rc", 1),
    ("alloc::collections::linked_list::Node<", "LinkedList", 1),
    ("alloc::collections::btree::node::LeafNode<", "BTreeMap", 2),
    ("alloc::collections::btree::node::InternalNode<", "BTreeMap", 2),
];
/// The value of each entry of a map that is a `BTreeSet`.
pub(crate) const SET_VALUE: &str = "alloc::collections::btree::set_val::SetValZST";
/// The containers of modules, for names that have no more than the module, and how many of the
/// function's arguments are those of the container.
pub(crate) const MODULES: [(&[&str], &str, usize); 17] = [
    (&["vec"], "Vec", 1),
    (&["slice"], "Vec", 1),
    (&["boxed"], "Box", 1),
    (&["rc"], "Rc", 1),
    (&["sync"], "Arc", 1),
    (&["raw_vec"], "RawVec", 1),
    (&["vec_deque"], "VecDeque", 1),
    (&["linked_list"], "LinkedList", 1),
    (&["binary_heap"], "BinaryHeap", 1),
    (&["btree", "map"], "BTreeMap", 2),
    (&["btree", "set"], "BTreeSet", 1),
    (&["btree", "node"], "LeafNode", 2),
    (&["hash", "map"], "HashMap", 2),
    (&["hash", "set"], "HashSet", 1),
    (&["hashbrown", "map"], "HashMap", 2),
    (&["hashbrown", "set"], "HashSet", 1),
    (&["hashbrown", "raw"], "RawTable", 1),
];
