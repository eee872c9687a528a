//! `POST /profile/start`, `/profile/stop` and `/profile/reset`: the heap profiler, by
//! `prof.active` and `prof.reset`.
use crate::answer::{Answer, line};
use crate::asked::Asked;
use crate::context::Context;
use crate::format::{Bad, bad, only};
use crate::heap_profile::{Failure, failure};
use crate::namespace::Namespace;
use crate::query;
use hyper::StatusCode;
use lumalloc_ctl::{Error, Value};

/// Answers `POST /profile/start`.
pub(crate) fn start(context: &Context, asked: &Asked) -> Answer {
    switch(context, asked, true, "samples are taken")
}

/// Answers `POST /profile/stop`.
pub(crate) fn stop(context: &Context, asked: &Asked) -> Answer {
    switch(context, asked, false, "no samples are taken; those that were stay")
}

/// Answers `POST /profile/reset`. `?lg_sample=` sets the rate.
pub(crate) fn reset(context: &Context, asked: &Asked) -> Answer {
    let lg_sample = match lg_sample(asked) {
        Ok(lg_sample) => lg_sample,
        Err(bad) => return bad.into(),
    };
    match begin_anew(context.namespace, lg_sample) {
        Ok(lg_sample) => {
            let text = format_args!(
                "the samples are forgotten; one is taken in 2^{lg_sample} bytes on average"
            );
            line(StatusCode::OK, text)
        }
        Err(failure) => failure.into(),
    }
}

fn switch(context: &Context, asked: &Asked, active: bool, done: &str) -> Answer {
    if let Err(bad) = only(asked, &[]) {
        return bad.into();
    }
    let namespace = context.namespace;
    let outcome = may_sample(namespace).and_then(|()| {
        let key = namespace.find("prof.active")?;
        namespace.write(&key, Value::Bool(active))
    });
    match outcome {
        Ok(()) => line(StatusCode::OK, done),
        Err(error) => failure(error).into(),
    }
}

/// Refuses what needs the heap profiler in a process without it. There `prof.active` can be set to
/// `false`, which does nothing.
fn may_sample(namespace: &dyn Namespace) -> Result<(), Error> {
    match namespace.read(&namespace.find("opt.prof")?)? {
        Value::Bool(true) => Ok(()),
        _ => Err(Error::NoEntry),
    }
}

fn lg_sample(asked: &Asked) -> Result<Option<usize>, Bad> {
    only(asked, &["lg_sample"])?;
    let Some(text) = query::values(asked.uri().query(), "lg_sample").next() else {
        return Ok(None);
    };
    match text.parse() {
        Ok(lg_sample @ 0..=63) => Ok(Some(lg_sample)),
        _ => Err(bad(format_args!("lg_sample is a number from 0 to 63, not {text:?}"))),
    }
}

/// Forgets the samples. Returns the rate.
fn begin_anew(namespace: &dyn Namespace, lg_sample: Option<usize>) -> Result<usize, Failure> {
    let present = read_rate(namespace).map_err(failure)?;
    let lg_sample = lg_sample.unwrap_or(present);
    let key = namespace.find("prof.reset").map_err(failure)?;
    namespace.write(&key, Value::Size(lg_sample)).map_err(failure)?;
    Ok(lg_sample)
}

fn read_rate(namespace: &dyn Namespace) -> Result<usize, Error> {
    match namespace.read(&namespace.find("prof.lg_sample")?)? {
        Value::Size(lg_sample) => Ok(lg_sample),
        _ => Err(Error::Fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, post, said};

    #[test]
    fn without_the_profiler_each_path_says_so() {
        let off = "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF\n";
        for path in [start, stop, reset] {
            assert_eq!(said(path(&context(), &post("/profile/x", ""))), (404, off.into()));
        }
    }

    #[test]
    fn a_wrong_rate_is_refused() {
        for wrong in ["64", "-1", "x", ""] {
            let path = format!("/profile/reset?lg_sample={wrong}");
            let text = format!("lg_sample is a number from 0 to 63, not {wrong:?}\n");
            assert_eq!(said(reset(&context(), &post(&path, ""))), (400, text));
        }
        let text = "no such parameter: \"rate\"; there are: lg_sample\n";
        let asked = post("/profile/reset?rate=1", "");
        assert_eq!(said(reset(&context(), &asked)), (400, text.into()));
        let text = "no such parameter: \"x\"; there are none here\n";
        assert_eq!(said(start(&context(), &post("/profile/start?x", ""))), (400, text.into()));
    }
}
