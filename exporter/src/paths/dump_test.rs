//! Dumps into directories that the tests make.

use super::*;
use crate::namespace::Linked;
use crate::testing::{Directory, into, json as told, post, said};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn both_files_are_of_one_snapshot() {
    let directory = Directory::new("dump");
    let names = told(dump(&into(Some(&directory.0)), &post("/dump", "")));
    let [text, json] = ["text", "json"].map(|end| PathBuf::from(names[end].as_str().unwrap()));
    assert_eq!(directory.files().len(), 2);
    // The tests run without the profiler.
    assert!(names["profile"].is_null());
    for file in [&text, &json] {
        assert_eq!(file.parent(), Some(directory.0.as_path()));
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Other tests take snapshots too, but not all the time.
    let is_one = (0..100).any(|_| {
        let [text, json] = printed(&Linked).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let allocated = &json["jemalloc"]["stats"]["allocated"];
        text.contains(&format!("Allocated: {allocated}, "))
    });
    assert!(is_one);
    assert!(fs::read_to_string(text).unwrap().starts_with("___ Begin lumalloc statistics ___\n"));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert!(json["jemalloc"]["stats"]["allocated"].is_u64());
}

#[test]
fn without_a_directory_nothing_is_written() {
    let expected = "no directory is configured for files: name one with dumps:DIRECTORY in \
                    LUMALLOC_EXPORTER, --dump-directory of lumalloc serve, or dump_directory of \
                    the builder\n";
    assert_eq!(said(dump(&into(None), &post("/dump", ""))), (409, expected.into()));
    let missing = Path::new("/nonexistent/for/dumps");
    let expected = "cannot write /nonexistent/for/dumps: No such file or directory (os error 2)\n";
    assert_eq!(said(dump(&into(Some(missing)), &post("/dump", ""))), (500, expected.into()));
    let expected = "no such parameter: \"dir\"; there are none here\n";
    assert_eq!(said(dump(&into(None), &post("/dump?dir=/", ""))), (400, expected.into()));
}

#[test]
fn what_is_there_stays_and_links_are_not_followed() {
    let directory = Directory::new("link");
    let (file, link) = (directory.0.join("file"), directory.0.join("link"));
    fs::write(&file, "before").unwrap();
    symlink(directory.0.join("elsewhere"), &link).unwrap();
    for path in [&file, &link] {
        let failure = write(path, b"after").unwrap_err().to_string();
        let path = path.display();
        assert_eq!(failure, format!("cannot write {path}: File exists (os error 17)"));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    assert!(!directory.0.join("elsewhere").exists());
    assert_eq!(directory.files().len(), 2, "nothing unfinished stays");
}

#[test]
fn too_many_and_too_long_are_refused() {
    let directory = Directory::new("many");
    // An earlier process of the same number left as many.
    for millis in ["1700000000000", "4100000000000"] {
        for number in 0..MOST {
            assert!(new_name(Some(&directory.0)).is_ok());
            for end in ["txt", "json", "pb.gz"] {
                let name = format!("lumalloc.{}.{millis}.{number}.{end}", std::process::id());
                fs::write(directory.0.join(name), "").unwrap();
            }
        }
    }
    let expected =
        format!("64 dumps of this process lie in {}: remove some first\n", directory.0.display());
    assert_eq!(said(dump(&into(Some(&directory.0)), &post("/dump", ""))), (507, expected));
    let answer: Answer =
        write(&directory.0.join("long"), &vec![0; LARGEST + 1]).unwrap_err().into();
    let expected = "the statistics have 67108865 bytes; 67108864 are written at most\n";
    assert_eq!(said(answer), (507, expected.into()));
    assert_eq!(directory.files().len(), 2 * 3 * MOST);
    let answer: Answer = Failure::NoSnapshot.into();
    assert_eq!(said(answer), (503, "no snapshot can be taken\n".into()));
    let answer: Answer = Failure::NoMemory.into();
    assert_eq!(said(answer), (503, "there is no memory for the statistics\n".into()));
    let answer: Answer = Failure::Profile(heap_profile::Failure::TooLarge(64 << 20)).into();
    let text = "the profile has more than 67108864 bytes: write it to a file with prof.dump\n";
    assert_eq!(said(answer), (507, text.into()));
}

/// The second file cannot be made if something exists at its path.
#[test]
fn half_a_dump_is_removed() {
    let directory = Directory::new("half");
    let whole = directory.0.join("whole");
    write(&whole, b"text").unwrap();
    assert_eq!(fs::read(&whole).unwrap(), b"text");
    assert_eq!(directory.files().len(), 1);
    // A file that is being written has another name.
    symlink("/dev/full", directory.0.join("half.tmp")).unwrap();
    let half = directory.0.join("half");
    let failure = write(&half, b"text").unwrap_err();
    let expected = format!("cannot write {}: File exists (os error 17)", half.display());
    assert_eq!((failure.to_string(), half.exists()), (expected, false));
}
