package postgres

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerArrays makes a connection encode the slices of batches as they are. By
// default pgx plans each element, and allocates most of them.
func registerArrays(m *pgtype.Map) {
	for _, oid := range []uint32{
		pgtype.UUIDArrayOID, pgtype.TextArrayOID, pgtype.ByteaArrayOID, pgtype.JSONArrayOID, pgtype.JSONBArrayOID,
		pgtype.Int4ArrayOID, pgtype.Int8ArrayOID, pgtype.Float8ArrayOID,
	} {
		known, _ := m.TypeForOID(oid)
		codec := &arrayCodec{pgtype.ArrayCodec{ElementType: known.Codec.(*pgtype.ArrayCodec).ElementType}}
		codec.ElementType, _ = m.TypeForOID(codec.ElementType.OID)
		m.RegisterType(&pgtype.Type{Name: known.Name, OID: oid, Codec: codec})
	}
}

// arrayCodec encodes slices of its elements' Go type in binary.
type arrayCodec struct{ pgtype.ArrayCodec }

func (c *arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		if plan := c.plan(value); plan != nil {
			return plan
		}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// plan returns the plan for a slice; nil if it is not of the elements' Go type.
func (c *arrayCodec) plan(value any) pgtype.EncodePlan {
	of := c.ElementType.OID
	switch value.(type) {
	case []uuid.UUID:
		if of == pgtype.UUIDOID {
			return arrayPlan[uuid.UUID]{of, func(buf []byte, v uuid.UUID) []byte { return append(buf, v[:]...) }}
		}
	case []string:
		if of == pgtype.TextOID {
			return arrayPlan[string]{of, func(buf []byte, v string) []byte { return append(buf, v...) }}
		}
	case [][]byte:
		switch of {
		case pgtype.ByteaOID, pgtype.JSONOID:
			return arrayPlan[[]byte]{of, func(buf, v []byte) []byte { return append(buf, v...) }}
		case pgtype.JSONBOID:
			return arrayPlan[[]byte]{of, func(buf, v []byte) []byte { return append(append(buf, jsonbVersion), v...) }}
		}
	case []int32:
		if of == pgtype.Int4OID {
			return arrayPlan[int32]{of, func(buf []byte, v int32) []byte { return binary.BigEndian.AppendUint32(buf, uint32(v)) }}
		}
	case []int64:
		if of == pgtype.Int8OID {
			return arrayPlan[int64]{of, func(buf []byte, v int64) []byte { return binary.BigEndian.AppendUint64(buf, uint64(v)) }}
		}
	case []float64:
		if of == pgtype.Float8OID {
			return arrayPlan[float64]{of, func(buf []byte, v float64) []byte { return binary.BigEndian.AppendUint64(buf, math.Float64bits(v)) }}
		}
	}
	return nil
}

// jsonbVersion begins a jsonb value in binary.
const jsonbVersion = 1

// arrayPlan encodes a slice as an array of one dimension.
type arrayPlan[T any] struct {
	of     uint32
	append func(buf []byte, v T) []byte
}

// Encode appends the array to buf. A nil slice is NULL, and so is a nil []byte.
func (p arrayPlan[T]) Encode(value any, buf []byte) ([]byte, error) {
	values := value.([]T)
	if values == nil {
		return nil, nil
	}
	size := 20 + len(values)*(4+16) // at least, for elements of a fixed size
	texts, _ := value.([][]byte)
	for _, v := range texts {
		size += len(v)
	}
	if texts, ok := value.([]string); ok {
		for _, v := range texts {
			size += len(v)
		}
	}
	hasNull := slices.ContainsFunc(texts, func(v []byte) bool { return v == nil })
	buf = slices.Grow(buf, size)
	for _, field := range []uint32{1, 0, p.of, uint32(len(values)), 1} { // dimensions, NULLs, type, length, first index
		buf = binary.BigEndian.AppendUint32(buf, field)
	}
	if hasNull {
		buf[len(buf)-13] = 1
	}
	for i, v := range values {
		start := len(buf)
		buf = append(buf, 0, 0, 0, 0)
		length := uint32(math.MaxUint32) // NULL
		if texts == nil || texts[i] != nil {
			buf = p.append(buf, v)
			length = uint32(len(buf) - start - 4)
		}
		binary.BigEndian.PutUint32(buf[start:], length)
	}
	return buf, nil
}
