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
	switch v := value.(type) {
	case uuid.UUID:
		return &uuidPlan{}, (*uuidValue)(&v), true
	case []uuid.UUID:
		return &uuidsPlan{}, uuidArray(v), true
	}
	return nil, nil, false
}

// uuidValue is a UUID in pgx's terms.
type uuidValue uuid.UUID

func (u *uuidValue) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: *u, Valid: true}, nil
}

type uuidPlan struct{ next pgtype.EncodePlan }

func (p *uuidPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	v := value.(uuid.UUID)
	return p.next.Encode((*uuidValue)(&v), buf)
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

type uuidsPlan struct{ next pgtype.EncodePlan }

func (p *uuidsPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *uuidsPlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(uuidArray(value.([]uuid.UUID)), buf)
}

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
