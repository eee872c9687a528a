//! Makes one file from the sources of the page, and what it is served with: its hashes and its
//! gzip.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    let sources = Path::new("page");
    let style = fs::read_to_string(sources.join("style.css"))?;
    let script = scripts(&sources.join("script"))?;
    let page = fs::read_to_string(sources.join("index.html"))?
        .replace("/*STYLE*/", &style)
        .replace("/*SCRIPT*/", &script);
    let constants = format!(
        "/// Of the style, for the policy.\nconst STYLE_HASH: &str = \"sha256-{}\";\n\
         /// Of the script, for the policy.\nconst SCRIPT_HASH: &str = \"sha256-{}\";\n\
         /// Names this version of the page.\nconst ETAG: &str = \"\\\"{}\\\"\";\n",
        hash(&style),
        hash(&script),
        hash(&page)
    );
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(page.as_bytes())?;
    let to = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(to.join("page.html"), &page)?;
    fs::write(to.join("page.html.gz"), packed.finish()?)?;
    fs::write(to.join("page_constants.rs"), constants)
}

/// Joins the parts of the script, in the order of their names, without lines that are comments and
/// without indentation.
fn scripts(folder: &Path) -> io::Result<String> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.sort();
    let mut script = String::new();
    for file in files {
        let text = fs::read_to_string(file)?;
        if text.lines().any(|line| line.matches('`').count() % 2 == 1) {
            return Err(io::Error::other("a text of the script has several lines"));
        }
        let is_comment = |line: &str| line.starts_with("/**") && line.trim_end().ends_with("*/");
        let is_code = |line: &&str| !line.starts_with("//") && !is_comment(line);
        let lines = text.split_inclusive('\n').map(str::trim_start);
        lines.filter(is_code).for_each(|line| script.push_str(line));
    }
    Ok(script)
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}
