//! A command line that is made from a template.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The values for the placeholders of a template.
#[derive(Clone)]
pub(crate) struct Values {
    pub(crate) percent: u32,
    /// `benches/programs`.
    pub(crate) programs: PathBuf,
    /// The directory of generated inputs, built programs and sockets.
    pub(crate) made: PathBuf,
    /// The address of the server, once it listens.
    pub(crate) address: String,
}

/// A command line: environment, words, standard input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) words: Vec<String>,
    pub(crate) input: Option<String>,
}

impl Line {
    /// Reads a template, as the table of programs describes it.
    pub(crate) fn new(template: &str, values: &Values) -> Self {
        let mut line = Self { environment: Vec::new(), words: Vec::new(), input: None };
        for word in template.split_whitespace().map(|word| filled(word, values)) {
            let setting = word.split_once('=').filter(|(name, _)| is_variable(name));
            if let (true, Some((name, value))) = (line.words.is_empty(), setting) {
                line.environment.push((name.to_owned(), value.to_owned()));
            } else if let Some(file) = word.strip_prefix('<') {
                line.input = Some(file.to_owned());
            } else {
                line.words.push(if word == "''" { String::new() } else { word });
            }
        }
        line
    }

    /// The command with an environment of its own: a path to programs, the C locale, no home
    /// directory.
    pub(crate) fn command(&self, launch: Option<&Path>) -> Result<Command, String> {
        let (first, rest) = self.words.split_first().ok_or("an empty command line")?;
        let mut command = match launch {
            Some(launch) => {
                let mut command = Command::new(launch);
                command.arg(TIME_LIMIT_SECONDS).arg(on_path(first)?);
                command
            }
            None => Command::new(on_path(first)?),
        };
        command.args(rest).env_clear();
        command.env("PATH", PATH).env("LC_ALL", "C").env("HOME", "/nonexistent");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(match &self.input {
            Some(path) => Stdio::from(File::open(path).map_err(|why| format!("{path}: {why}"))?),
            None => Stdio::null(),
        });
        Ok(command)
    }
}

/// A run that takes longer is killed and has failed.
const TIME_LIMIT_SECONDS: &str = "120";

/// Only directories of Debian's programs, so that a run means the same on every machine.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The path of a program, because the launcher takes only paths. A bare name is looked up as a
/// shell would.
fn on_path(name: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let found = PATH.split(':').map(|directory| Path::new(directory).join(name));
    found.into_iter().find(|path| path.exists()).ok_or_else(|| format!("{name} is missing"))
}

fn is_variable(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

fn filled(word: &str, values: &Values) -> String {
    let seconds = (values.percent * 2 / 100).max(1);
    multiplied(word, values.percent)
        .replace("{percent}", &values.percent.to_string())
        .replace("{seconds}", &seconds.to_string())
        .replace("{programs}", &values.programs.to_string_lossy())
        .replace("{made}", &values.made.to_string_lossy())
        .replace("{address}", &values.address)
}

/// The word with `{percent*N}` replaced by the product.
fn multiplied(word: &str, percent: u32) -> String {
    let product = || {
        let (before, rest) = word.split_once("{percent*")?;
        let (times, after) = rest.split_once('}')?;
        Some(format!("{before}{}{after}", percent * times.parse::<u32>().ok()?))
    };
    product().unwrap_or_else(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Line, Values};

    fn line(template: &str) -> Line {
        let values = Values {
            percent: 40,
            programs: "/p".into(),
            made: "/m".into(),
            address: "here:1".to_owned(),
        };
        Line::new(template, &values)
    }

    #[test]
    fn a_template_is_filled_in() {
        let read =
            line("A_B=c tool -x={percent*25} {programs}/a {seconds} '' http://{address} <{made}/i");
        assert_eq!(read.environment, [("A_B".to_owned(), "c".to_owned())]);
        assert_eq!(read.words, ["tool", "-x=1000", "/p/a", "1", "", "http://here:1"]);
        assert_eq!(read.input.as_deref(), Some("/m/i"));
    }

    #[test]
    fn a_missing_tool_is_named() {
        let why = line("lumalloc-no-such-tool x").command(None).err().unwrap();
        assert_eq!(why, "lumalloc-no-such-tool is missing");
    }
}
