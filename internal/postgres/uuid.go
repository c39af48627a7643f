package postgres

import (
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/countersign-dev/countersign/envelope"
)

// registerUUID makes a connection encode and scan uuid.UUID and the ids of envelopes as
// sixteen bytes. By default pgx uses their text form, which took a tenth of a
// worker's time.
func registerUUID(m *pgtype.Map) {
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{wrapUUIDEncode}, m.TryWrapEncodePlanFuncs...)
	m.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}})
}

func wrapUUIDEncode(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	if _, ok := uuidOf(value); ok {
		return &uuidPlan{}, wrapUUID(value), true
	}
	return nil, nil, false
}

// uuidOf returns the UUID of a value that is one.
func uuidOf(value any) (uuid.UUID, bool) {
	switch v := value.(type) {
	case uuid.UUID:
		return v, true
	case envelope.ActionID:
		return uuid.UUID(v), true
	case envelope.EmployeeID:
		return uuid.UUID(v), true
	case envelope.TenantID:
		return uuid.UUID(v), true
	}
	return uuid.Nil, false
}

func wrapUUID(value any) any {
	v, _ := uuidOf(value)
	return (*uuidValue)(&v)
}

// uuidPlan encodes a value like pgx's own plan for the result of wrapUUID.
type uuidPlan struct {
	next pgtype.EncodePlan
}

func (p *uuidPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(wrapUUID(value), buf)
}

// uuidValue is a UUID in pgx's terms.
type uuidValue uuid.UUID

func (u *uuidValue) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: *u, Valid: true}, nil
}

// uuidCodec scans sixteen bytes into the same types. pgx asks a codec first, and then
// a sql.Scanner, which uuid.UUID is, with the text.
type uuidCodec struct{ pgtype.UUIDCodec }

func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if format == pgtype.BinaryFormatCode && uuidTargetOf(target) != nil {
		return uuidScanPlan{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

// uuidTargetOf returns where a UUID is read into; nil for other targets.
func uuidTargetOf(target any) *[16]byte {
	switch t := target.(type) {
	case *uuid.UUID:
		return (*[16]byte)(t)
	case *envelope.ActionID:
		return (*[16]byte)(t)
	case *envelope.EmployeeID:
		return (*[16]byte)(t)
	case *envelope.TenantID:
		return (*[16]byte)(t)
	}
	return nil
}

type uuidScanPlan struct{}

func (uuidScanPlan) Scan(src []byte, target any) error {
	if len(src) != 16 {
		return errors.New("NULL cannot be read into a UUID")
	}
	*uuidTargetOf(target) = [16]byte(src)
	return nil
}
