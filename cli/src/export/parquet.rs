//! Apache Parquet: columns in groups of rows, with dictionaries, Snappy and statistics. Numbers are UINT_64, text is STRING,
//! what may be absent is OPTIONAL.

use super::table::{Column, Kind, Rows, Value};
use crate::output::Stop;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a group: some tens of megabytes while they are collected.
const GROUP: usize = 1 << 16;

/// Collects a group of rows, then writes it.
pub struct Parquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    collected: Vec<Collected>,
    rows: usize,
}

impl<W: Write + Send> Parquet<W> {
    /// Writes the head of the file.
    pub fn new(to: W, columns: &[Column]) -> Result<Self, Stop> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("thermalloc {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = SerializedFileWriter::new(to, schema(columns).map_err(stop)?, Arc::new(properties));
        let collected = columns.iter().map(|column| Collected::new(column.kind)).collect();
        Ok(Self { writer: writer.map_err(stop)?, collected, rows: 0 })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for collected in &mut self.collected {
            if let Some(mut column) = group.next_column()? {
                collected.write(&mut column)?;
                column.close()?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl<W: Write + Send> Rows for Parquet<W> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), Stop> {
        for (collected, value) in self.collected.iter_mut().zip(values) {
            collected.push(*value);
        }
        self.rows += 1;
        if self.rows == GROUP { self.write_group().map_err(stop) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), Stop> {
        if self.rows > 0 {
            self.write_group().map_err(stop)?;
        }
        self.writer.close().map_err(stop)?;
        Ok(())
    }
}

/// Values of a column that are still to be written.
enum Collected {
    Numbers(Vec<i64>),
    /// Only those that are there, and for each row whether it is (1).
    Optionals(Vec<i64>, Vec<i16>),
    Fractions(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl Collected {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Optional => Self::Optionals(Vec::new(), Vec::new()),
            Kind::Fraction => Self::Fractions(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
        }
    }

    /// UINT_64 is stored as the signed number of the same bits.
    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::Numbers(numbers), Value::Number(number)) => numbers.push(number.cast_signed()),
            (Self::Optionals(numbers, there), Value::Optional(number)) => {
                numbers.extend(number.map(u64::cast_signed));
                there.push(number.is_some().into());
            }
            (Self::Fractions(numbers), Value::Fraction(number)) => numbers.push(number),
            (Self::Texts(texts), Value::Text(text)) => texts.push(text.into()),
            (_, value) => unreachable!("{value:?} in a column of another kind"),
        }
    }

    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Numbers(numbers) => {
                column.typed::<Int64Type>().write_batch(numbers, None, None)?;
                numbers.clear();
            }
            Self::Optionals(numbers, there) => {
                column.typed::<Int64Type>().write_batch(numbers, Some(there), None)?;
                numbers.clear();
                there.clear();
            }
            Self::Fractions(numbers) => {
                column.typed::<DoubleType>().write_batch(numbers, None, None)?;
                numbers.clear();
            }
            Self::Texts(texts) => {
                column.typed::<ByteArrayType>().write_batch(texts, None, None)?;
                texts.clear();
            }
        }
        Ok(())
    }
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<TypePtr>, ParquetError> =
        columns.iter().map(|column| Ok(Arc::new(field(column)?))).collect();
    Ok(Arc::new(Type::group_type_builder("table").with_fields(fields?).build()?))
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let unsigned = Some(LogicalType::integer(64, false));
    let (physical, logical) = match column.kind {
        Kind::Number | Kind::Optional => (Physical::INT64, unsigned),
        Kind::Fraction => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.kind == Kind::Optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

fn stop(error: ParquetError) -> Stop {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => Stop::Write(*error),
            Err(error) => Stop::Write(io::Error::other(error)),
        },
        error => Stop::Write(io::Error::other(error)),
    }
}
