//! Protocol buffers, by the encoding's own rules.

/// A field of a protocol buffer: its number, and a number or bytes.
pub enum Field<'a> {
    /// Such as an id.
    Number(u64, u64),
    /// A text, a message, or packed numbers.
    Bytes(u64, &'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// The fields of a message, by the encoding's own rules.
pub fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => fields.push(Field::Number(key >> 3, varint(&mut bytes))),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                fields.push(Field::Bytes(key >> 3, content));
            }
            other => panic!("wire type {other}"),
        }
    }
    fields
}

/// Packed numbers.
pub fn numbers(mut bytes: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(varint(&mut bytes));
    }
    numbers
}

/// Texts or messages of the fields of this number.
pub fn messages<'a>(fields: &[Field<'a>], wanted: u64) -> Vec<&'a [u8]> {
    let content = |field: &Field<'a>| match field {
        Field::Bytes(number, bytes) if *number == wanted => Some(*bytes),
        _ => None,
    };
    fields.iter().filter_map(content).collect()
}

/// The number in the first field of this number; 0 if there is none.
pub fn number(fields: &[Field<'_>], wanted: u64) -> u64 {
    let value = |field: &Field<'_>| match field {
        Field::Number(number, value) if *number == wanted => Some(*value),
        _ => None,
    };
    fields.iter().find_map(value).unwrap_or(0)
}
