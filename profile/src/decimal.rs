//! Decimal numbers, written without allocation.

/// The digits of a number.
pub(crate) struct Decimal {
    digits: [u8; 20],
    first: usize,
}

impl Decimal {
    /// Takes a number apart.
    pub(crate) fn of(number: u64) -> Decimal {
        let mut digits = [0; 20];
        let (mut rest, mut first) = (number, digits.len());
        for (index, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            first = index;
            if rest == 0 {
                break;
            }
        }
        Decimal { digits, first }
    }

    /// Returns the digits as text.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.first..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_have_the_digits_of_the_standard_library() {
        for number in [0, 9, 10, 1203, u64::MAX] {
            assert_eq!(Decimal::of(number).as_bytes(), number.to_string().as_bytes());
        }
    }
}
