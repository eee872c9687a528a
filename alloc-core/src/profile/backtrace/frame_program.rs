//! Runs the instructions of an unwind table (call frame instructions) up to an address.
//!
//! Only what leads to the caller is kept: the CFA, the frame pointer and the return address.
//! Source: the DWARF 5 standard, section 6.4, and the Linux Standard Base, `.eh_frame`.

use super::cursor::Cursor;
use super::machine;
use super::rule::{Base, Rule, Step, WORD};

/// States that `remember_state` may keep at a time.
const REMEMBERED: usize = 8;

/// What all functions of one part of the table share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    /// What distances in code and offsets of values are multiplied by.
    pub(super) code_unit: u64,
    pub(super) data_unit: i64,
    /// How addresses are written.
    pub(super) pointers: u8,
    /// The register of the return address.
    pub(super) back: u64,
    /// Whether each function has more data before its instructions.
    pub(super) is_augmented: bool,
    /// Whether the code is the return from a signal handler.
    pub(super) is_signal: bool,
    /// The first instructions of each function.
    pub(super) first: Cursor,
}

/// How the CFA is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cfa {
    Register(u64, i64),
    /// By the word at an offset from a register.
    WordAt(u64, i64),
    Other,
}

/// Where the caller's value of a register is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// In the register.
    Same,
    /// In memory, at an offset from the CFA.
    At(i64),
    /// In memory, where the frame pointer points.
    AtFrame,
    /// Nowhere. For the return address: there is no caller.
    Lost,
    /// Elsewhere.
    Other,
}

#[derive(Clone, Copy)]
struct State {
    cfa: Cfa,
    frame: Value,
    back: Value,
}

const START: State = State { cfa: Cfa::Other, frame: Value::Same, back: Value::Same };

struct Program<'a> {
    common: &'a Common,
    state: State,
    /// The state after the first instructions, to which `restore` returns.
    initial: State,
    remembered: [State; REMEMBERED],
    depth: usize,
}

/// Returns the rule at `address` of a function that begins at `begin`. `None`: the instructions
/// are malformed.
pub(super) fn rule(
    common: &Common,
    of_function: Cursor,
    begin: usize,
    address: usize,
) -> Option<Rule> {
    let remembered = [START; REMEMBERED];
    let mut program = Program { common, state: START, initial: START, remembered, depth: 0 };
    program.run(common.first, 0, usize::MAX)?;
    program.initial = program.state;
    program.run(of_function, begin, address)?;
    Some(program.state.rule())
}

impl State {
    fn rule(&self) -> Rule {
        let (base, offset) = match self.cfa {
            Cfa::Register(machine::STACK_POINTER, offset) => (Base::Stack, offset),
            Cfa::Register(machine::FRAME_POINTER, offset) => (Base::Frame, offset),
            Cfa::WordAt(machine::FRAME_POINTER, offset) if self.frame == Value::AtFrame => {
                (Base::WordAtLinkedFrame, offset)
            }
            Cfa::WordAt(machine::FRAME_POINTER, offset) => (Base::WordAtFrame, offset),
            _ => return Rule::End,
        };
        let place = |value: Value| match value {
            Value::Same => Ok(None),
            Value::At(offset) => words(offset).map(Some).ok_or(()),
            Value::AtFrame | Value::Lost | Value::Other => Err(()),
        };
        let (Ok(offset), Ok(back)) = (i32::try_from(offset), place(self.back)) else {
            return Rule::End;
        };
        // A frame pointer that is lost is not needed by callers that go by the stack pointer.
        let frame = place(self.frame).unwrap_or_default();
        Rule::Step(Step { base, offset, frame, back, is_own: false }).fitting()
    }
}

/// Returns an offset in words, if it is one of whole words and not too far away.
fn words(offset: i64) -> Option<i16> {
    const BYTES: i64 = WORD as i64;
    if offset % BYTES == 0 { i16::try_from(offset / BYTES).ok() } else { None }
}

impl Program<'_> {
    /// Runs instructions until one concerns code behind `address`.
    fn run(&mut self, mut code: Cursor, begin: usize, address: usize) -> Option<()> {
        let mut at = begin;
        while code.left() > 0 {
            let byte = code.u8()?;
            let operand = byte & 0x3f;
            match byte >> 6 {
                1 => at = self.later(at, u64::from(operand)),
                2 => {
                    let offset = code.uleb()? as i64;
                    self.set_at(u64::from(operand), offset);
                }
                3 => self.restore(u64::from(operand)),
                _ => match operand {
                    0x01 => at = code.pointer(self.common.pointers, 0)?,
                    0x02 => at = self.later(at, u64::from(code.u8()?)),
                    0x03 => at = self.later(at, u64::from(code.u16()?)),
                    0x04 => at = self.later(at, u64::from(code.u32()?)),
                    _ => self.one(operand, &mut code)?,
                },
            }
            if at > address {
                break;
            }
        }
        Some(())
    }

    fn later(&self, at: usize, distance: u64) -> usize {
        at.wrapping_add(distance.wrapping_mul(self.common.code_unit) as usize)
    }

    /// Runs an instruction that does not continue to later code.
    fn one(&mut self, instruction: u8, code: &mut Cursor) -> Option<()> {
        match instruction {
            // nop, and AArch64's changes of the signing of return addresses, which are stripped.
            0x00 | 0x2c | 0x2d => {}
            0x05 => {
                let (register, offset) = (code.uleb()?, code.uleb()? as i64);
                self.set_at(register, offset);
            }
            0x06 => {
                let register = code.uleb()?;
                self.restore(register);
            }
            0x07 => self.set(code.uleb()?, Value::Lost),
            0x08 => self.set(code.uleb()?, Value::Same),
            0x09 => {
                let register = code.uleb()?;
                code.uleb()?;
                self.set(register, Value::Other);
            }
            0x0a => self.remember()?,
            0x0b => self.recall()?,
            0x0c => self.state.cfa = Cfa::Register(code.uleb()?, code.uleb()? as i64),
            0x0d => self.set_cfa_register(code.uleb()?),
            0x0e => self.set_cfa_offset(code.uleb()? as i64),
            0x0f => self.state.cfa = cfa_of_expression(code)?,
            0x10 => {
                let register = code.uleb()?;
                let value = value_of_expression(code)?;
                self.set(register, value);
            }
            0x16 => {
                let register = code.uleb()?;
                skip_expression(code)?;
                self.set(register, Value::Other);
            }
            0x11 => {
                let (register, offset) = (code.uleb()?, code.sleb()?);
                self.set_at(register, offset);
            }
            0x12 => {
                let (register, offset) = (code.uleb()?, code.sleb()?);
                self.state.cfa = Cfa::Register(register, self.scaled(offset));
            }
            0x13 => {
                let offset = code.sleb()?;
                self.set_cfa_offset(self.scaled(offset));
            }
            0x14 | 0x15 => {
                let register = code.uleb()?;
                code.uleb()?;
                self.set(register, Value::Other);
            }
            // The size of arguments on the stack, which the CFA contains already.
            0x2e => drop(code.uleb()?),
            _ => return None,
        }
        Some(())
    }

    fn scaled(&self, offset: i64) -> i64 {
        offset.wrapping_mul(self.common.data_unit)
    }

    fn value(&mut self, register: u64) -> Option<&mut Value> {
        if register == self.common.back {
            Some(&mut self.state.back)
        } else if register == machine::FRAME_POINTER {
            Some(&mut self.state.frame)
        } else {
            None
        }
    }

    fn set(&mut self, register: u64, to: Value) {
        if let Some(value) = self.value(register) {
            *value = to;
        }
    }

    fn set_at(&mut self, register: u64, offset: i64) {
        let offset = self.scaled(offset);
        self.set(register, Value::At(offset));
    }

    fn restore(&mut self, register: u64) {
        let State { frame, back, .. } = self.initial;
        let to = if register == self.common.back { back } else { frame };
        self.set(register, to);
    }

    fn set_cfa_register(&mut self, register: u64) {
        self.state.cfa = match self.state.cfa {
            Cfa::Register(_, offset) => Cfa::Register(register, offset),
            _ => Cfa::Other,
        };
    }

    fn set_cfa_offset(&mut self, offset: i64) {
        self.state.cfa = match self.state.cfa {
            Cfa::Register(register, _) => Cfa::Register(register, offset),
            _ => Cfa::Other,
        };
    }

    fn remember(&mut self) -> Option<()> {
        *self.remembered.get_mut(self.depth)? = self.state;
        self.depth += 1;
        Some(())
    }

    fn recall(&mut self) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        self.state = *self.remembered.get(self.depth)?;
        Some(())
    }
}

fn skip_expression(code: &mut Cursor) -> Option<Cursor> {
    let bytes = code.uleb()? as usize;
    code.part(bytes)
}

/// `DW_OP_breg0` and the operations for other registers, and `DW_OP_deref`.
const REGISTER_0: u8 = 0x70;
const REGISTER_31: u8 = 0x8f;
const WORD_THERE: u8 = 0x06;

/// Reads the expression of a CFA. Compilers write one where a function aligns its stack: the CFA is
/// then the word at an offset from the frame pointer. All others are not followed.
fn cfa_of_expression(code: &mut Cursor) -> Option<Cfa> {
    let mut expression = skip_expression(code)?;
    let Some(register @ REGISTER_0..=REGISTER_31) = expression.u8() else {
        return Some(Cfa::Other);
    };
    let offset = expression.sleb()?;
    let is_word = expression.u8() == Some(WORD_THERE) && expression.left() == 0;
    Some(if is_word { Cfa::WordAt(u64::from(register - REGISTER_0), offset) } else { Cfa::Other })
}

/// Reads the expression of the place of a register. Of those, the frame pointer is followed: in a
/// function that aligns its stack, the caller's frame pointer is where the frame pointer points.
fn value_of_expression(code: &mut Cursor) -> Option<Value> {
    let mut expression = skip_expression(code)?;
    let is_frame = expression.u8() == Some(REGISTER_0 + machine::FRAME_POINTER as u8)
        && expression.sleb() == Some(0)
        && expression.left() == 0;
    Some(if is_frame { Value::AtFrame } else { Value::Other })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn over(bytes: &'static [u8]) -> Cursor {
        let at = bytes.as_ptr().expose_provenance();
        // SAFETY: the bytes are static.
        unsafe { Cursor::new(at, at + bytes.len()) }
    }

    /// What gcc writes for x86-64: the CFA is rsp + 8, and the return address lies below it.
    fn common() -> Common {
        Common {
            code_unit: 1,
            data_unit: -8,
            pointers: 0x1b,
            back: 16,
            is_augmented: true,
            is_signal: false,
            first: over(&[0x0c, 7, 8, 0x90, 1]),
        }
    }

    fn at(program: &'static [u8], address: usize) -> Option<Rule> {
        rule(&common(), over(program), 0, address)
    }

    /// The frame pointer's place is in bytes.
    fn step(base: Base, offset: i32, frame: Option<i32>) -> Option<Rule> {
        let frame = frame.map(|bytes| i16::try_from(bytes / 8).expect("a near place"));
        Some(Rule::Step(Step { base, offset, frame, back: Some(-1), is_own: false }))
    }

    #[test]
    fn the_rule_is_that_of_the_address() {
        // push rbp; mov rbp, rsp; …; pop rbp; ret
        let program = &[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x64, 0x0c, 7, 8];
        assert_eq!(at(program, 0), step(Base::Stack, 8, None));
        assert_eq!(at(program, 1), step(Base::Stack, 16, Some(-16)));
        assert_eq!(at(program, 103), step(Base::Frame, 16, Some(-16)));
        assert_eq!(at(program, 104), step(Base::Stack, 8, Some(-16)));
    }

    #[test]
    fn a_state_is_remembered_and_recalled() {
        let program = &[0x41, 0x0e, 48, 0x41, 0x0a, 0x0e, 8, 0xc6, 0x41, 0x0b];
        assert_eq!(at(program, 1), step(Base::Stack, 48, None));
        assert_eq!(at(program, 2), step(Base::Stack, 8, None));
        assert_eq!(at(program, 3), step(Base::Stack, 48, None));
        assert_eq!(at(&[0x0b], 0), None, "nothing was remembered");
        assert_eq!(at(&[0x0a; 9], 0), None, "too much was remembered");
    }

    #[test]
    fn an_aligned_stack_is_followed_and_other_expressions_are_not() {
        // breg6(-8); deref
        let program = &[0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0];
        let aligned = at(program, 0);
        assert_eq!(aligned, step(Base::WordAtLinkedFrame, -8, None));
        let elsewhere = &[0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0x70];
        assert_eq!(at(elsewhere, 0), step(Base::WordAtFrame, -8, None));
        // The rule of procedure linkage tables.
        let linkage = &[0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(at(linkage, 0), Some(Rule::End));
    }

    /// Some compilers put the caller's frame pointer below large variables.
    #[test]
    fn values_are_found_up_to_256_kib_away_at_whole_words() {
        let far = &[0x0e, 0xf0, 0xb8, 0x02, 0x86, 0x88, 0x27];
        assert_eq!(at(far, 0), step(Base::Stack, 40_048, Some(-40_000)));
        let farthest = &[0x90, 0xff, 0xff, 0x01];
        let Some(Rule::Step(found)) = at(farthest, 0) else { panic!("a step") };
        assert_eq!(found.back, Some(-0x7fff));
        assert_eq!(at(&[0x90, 0x80, 0x80, 0x02], 0), Some(Rule::End), "too far");
        let halves = Common { data_unit: -4, ..common() };
        let back_at = |program| rule(&halves, over(program), 0, 0);
        assert!(matches!(back_at(&[0x90, 4]), Some(Rule::Step(Step { back: Some(-2), .. }))));
        assert_eq!(back_at(&[0x90, 3]), Some(Rule::End), "half a word");
    }

    #[test]
    fn changes_of_the_signing_of_return_addresses_are_passed_over() {
        for change in [&[0x2c, 0x0e, 32][..], &[0x2d, 0x0e, 32]] {
            assert_eq!(at(change, 0), step(Base::Stack, 32, None));
        }
    }

    #[test]
    fn what_is_not_followed_ends_the_walk_and_bad_instructions_are_noticed() {
        assert_eq!(at(&[0x07, 16], 0), Some(Rule::End));
        assert_eq!(at(&[0x09, 16, 3], 0), Some(Rule::End));
        assert_eq!(at(&[0x0c, 3, 16], 0), Some(Rule::End), "from rbx");
        assert_eq!(at(&[0x3f], 0), None);
        assert_eq!(at(&[0x0c, 7], 0), None, "cut off");
        assert_eq!(at(&[0x0f, 100, 0x77], 0), None, "longer than its record");
    }
}
