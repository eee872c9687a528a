//! Collections whose memory comes from a region.

mod common;

use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use common::{Growth, Tiny};
use hashbrown::{DefaultHashBuilder, HashMap};
use lumalloc_region::{Best, Last, Method, Pool, Region, System};

fn fill_vectors<M: Method>() {
    let region = Region::<M, _>::open(Tiny::new(64, 7, Growth::InPlace)).unwrap();
    let mut rows = std::vec::Vec::new();
    for length in 0..100usize {
        let mut row = Vec::new_in(&region);
        row.extend(0..length);
        rows.push(row);
    }
    for (length, row) in rows.iter_mut().enumerate() {
        assert!(row.iter().copied().eq(0..length));
        row.shrink_to_fit();
        row.truncate(length / 2);
        row.shrink_to_fit();
    }
    for (length, row) in rows.iter().enumerate() {
        assert!(row.iter().copied().eq(0..length / 2));
    }
}

#[test]
fn vectors_live_in_regions() {
    fill_vectors::<Best>();
    fill_vectors::<Last>();
}

#[test]
fn a_map_lives_in_a_region() {
    let region = Region::<Best, _>::open(System).unwrap();
    let mut map = HashMap::with_hasher_in(DefaultHashBuilder::default(), &region);
    for number in 0..10_000u64 {
        map.insert(number, number * 3);
    }
    assert!((0..10_000).all(|number| map.get(&number) == Some(&(number * 3))));
    assert!(region.stat().busy_bytes > 160_000);
    drop(map);
    assert_eq!(region.stat().busy, 0);
}

#[test]
fn an_alignment_above_16_is_kept() {
    #[repr(align(256))]
    struct Page([u8; 300]);
    let region = Region::<Best, _>::open(Tiny::new(0, 3, Growth::Refused)).unwrap();
    let mut pages = Vec::new_in(&region);
    for fill in 0..50 {
        pages.push(Page([fill; 300]));
        assert!(pages.as_ptr().is_aligned());
    }
    assert!((0..50).zip(&pages).all(|(fill, page)| page.0 == [fill; 300]));
}

#[test]
fn the_last_vector_grows_where_it_lies() {
    let region = Region::<Last, _>::open(System).unwrap();
    let mut bytes = Vec::new_in(&region);
    bytes.push(0u8);
    let start = bytes.as_ptr();
    bytes.extend((0..1_000_000).map(|number| number as u8));
    assert_eq!(bytes.as_ptr(), start);
    assert_eq!(region.stat().busy, 1);
}

#[test]
fn the_nodes_of_a_list_live_in_a_pool() {
    struct Node<'a> {
        next: Option<Box<Node<'a>, &'a Region<Pool, System>>>,
        value: u64,
    }
    let region = Region::<Pool, _>::open(System).unwrap();
    let mut list = None;
    for value in 0..1000 {
        list = Some(Box::new_in(Node { next: list, value }, &region));
    }
    assert_eq!(region.stat().busy, 1000);
    let mut sum = 0;
    while let Some(node) = list {
        sum += node.value;
        list = Box::into_inner(node).next;
    }
    assert_eq!((sum, region.stat().busy), (499_500, 0));
}
