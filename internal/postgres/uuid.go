package postgres

import (
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/countersign-dev/countersign/envelope"
)

// registerUUID makes a connection encode uuid.UUID and the ids of envelopes as
// sixteen bytes. By default pgx uses their text form, which took a tenth of a
// worker's time.
func registerUUID(m *pgtype.Map) {
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{wrapUUIDEncode}, m.TryWrapEncodePlanFuncs...)
	m.TryWrapScanPlanFuncs = append([]pgtype.TryWrapScanPlanFunc{wrapUUIDScan}, m.TryWrapScanPlanFuncs...)
}

func wrapUUIDEncode(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	if ids, ok := value.([]uuid.UUID); ok {
		return &uuidPlan{wrap: wrapUUIDs}, uuidArray(ids), true
	}
	if _, ok := uuidOf(value); ok {
		return &uuidPlan{wrap: wrapUUID}, wrapUUID(value), true
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

func wrapUUIDs(value any) any { return uuidArray(value.([]uuid.UUID)) }

// uuidPlan encodes a value like pgx's own plan for the result of wrap.
type uuidPlan struct {
	wrap func(any) any
	next pgtype.EncodePlan
}

func (p *uuidPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(p.wrap(value), buf)
}

// uuidValue is a UUID in pgx's terms.
type uuidValue uuid.UUID

func (u *uuidValue) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: *u, Valid: true}, nil
}

// uuidArray is a slice of UUIDs in pgx's terms; its elements are passed by
// address, so that a batch costs no allocation per element.
type uuidArray []uuid.UUID

func (a uuidArray) Dimensions() []pgtype.ArrayDimension {
	if a == nil {
		return nil
	}
	return []pgtype.ArrayDimension{{Length: int32(len(a)), LowerBound: 1}}
}

func (a uuidArray) Index(i int) any { return (*uuidValue)(&a[i]) }

func (a uuidArray) IndexType() any { return (*uuidValue)(nil) }

func wrapUUIDScan(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	if t := uuidTargetOf(target); t != nil {
		return &uuidScanPlan{}, t, true
	}
	return nil, nil, false
}

// uuidTargetOf returns where a UUID is read into; nil for other targets.
func uuidTargetOf(target any) *uuidTarget {
	switch t := target.(type) {
	case *uuid.UUID:
		return (*uuidTarget)(t)
	case *envelope.ActionID:
		return (*uuidTarget)(t)
	case *envelope.EmployeeID:
		return (*uuidTarget)(t)
	case *envelope.TenantID:
		return (*uuidTarget)(t)
	}
	return nil
}

// uuidTarget reads a UUID in pgx's terms.
type uuidTarget uuid.UUID

func (u *uuidTarget) ScanUUID(v pgtype.UUID) error {
	if !v.Valid {
		return errors.New("NULL cannot be read into a UUID")
	}
	*u = v.Bytes
	return nil
}

type uuidScanPlan struct{ next pgtype.ScanPlan }

func (p *uuidScanPlan) SetNext(next pgtype.ScanPlan) { p.next = next }

func (p *uuidScanPlan) Scan(src []byte, target any) error {
	return p.next.Scan(src, uuidTargetOf(target))
}
