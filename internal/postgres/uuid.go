package postgres

import (
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerUUID makes a connection encode uuid.UUID as sixteen bytes. By default
// pgx uses its text form, which took a tenth of a worker's time.
func registerUUID(m *pgtype.Map) {
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{wrapUUIDEncode}, m.TryWrapEncodePlanFuncs...)
	m.TryWrapScanPlanFuncs = append([]pgtype.TryWrapScanPlanFunc{wrapUUIDScan}, m.TryWrapScanPlanFuncs...)
}

func wrapUUIDEncode(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	switch value.(type) {
	case uuid.UUID:
		return &uuidPlan{wrap: wrapUUID}, wrapUUID(value), true
	case []uuid.UUID:
		return &uuidPlan{wrap: wrapUUIDs}, wrapUUIDs(value), true
	}
	return nil, nil, false
}

func wrapUUID(value any) any {
	v := value.(uuid.UUID)
	return (*uuidValue)(&v)
}

func wrapUUIDs(value any) any { return uuidArray(value.([]uuid.UUID)) }

// uuidPlan encodes a value as pgx's own plan does for what wrap returns.
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

// uuidArray is a slice of UUIDs in pgx's terms; its elements are handed out
// by address, so that a batch costs no allocation per element.
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
	if t, ok := target.(*uuid.UUID); ok {
		return &uuidScanPlan{}, (*uuidTarget)(t), true
	}
	return nil, nil, false
}

// uuidTarget reads a UUID in pgx's terms.
type uuidTarget uuid.UUID

func (u *uuidTarget) ScanUUID(v pgtype.UUID) error {
	if !v.Valid {
		return errors.New("NULL cannot be read into a uuid.UUID")
	}
	*u = v.Bytes
	return nil
}

type uuidScanPlan struct{ next pgtype.ScanPlan }

func (p *uuidScanPlan) SetNext(next pgtype.ScanPlan) { p.next = next }

func (p *uuidScanPlan) Scan(src []byte, target any) error {
	return p.next.Scan(src, (*uuidTarget)(target.(*uuid.UUID)))
}
