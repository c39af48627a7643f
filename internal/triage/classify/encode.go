package classify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// errFeatures is the error for invalid stored features.
var errFeatures = errors.New("the stored features are damaged")

// maxEntries limits the entries of a stored list of features.
const maxEntries = 1 << 14

// MarshalBinary encodes the features for storage with a correction. The
// encoding contains buckets and values, and no text.
func (f Features) MarshalBinary() ([]byte, error) {
	b := []byte{version}
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(f.Request))
	for _, list := range [][]Entry{f.Content, f.Asking, f.Sender} {
		b = appendEntries(b, list)
	}
	return b, nil
}

// appendEntries writes distances between buckets. A zero in place of a distance
// begins a run of another value.
func appendEntries(b []byte, list []Entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	last, value := uint32(0), float32(0)
	for i, e := range list {
		if i == 0 || e.Value != value || e.Bucket <= last {
			b = append(b, 0)
			b = binary.BigEndian.AppendUint32(b, math.Float32bits(e.Value))
			b = binary.AppendUvarint(b, uint64(e.Bucket))
		} else {
			b = binary.AppendUvarint(b, uint64(e.Bucket-last))
		}
		last, value = e.Bucket, e.Value
	}
	return b
}

// UnmarshalBinary decodes the result of MarshalBinary. It rejects features of
// another version.
func (f *Features) UnmarshalBinary(b []byte) error {
	if len(b) < 9 {
		return errFeatures
	}
	if b[0] != version {
		return fmt.Errorf("the stored features have version %d, this program has version %d", b[0], version)
	}
	f.Request = math.Float64frombits(binary.BigEndian.Uint64(b[1:]))
	b = b[9:]
	for _, list := range []*[]Entry{&f.Content, &f.Asking, &f.Sender} {
		var err error
		if *list, b, err = readEntries(b); err != nil {
			return err
		}
	}
	if len(b) > 0 || math.IsNaN(f.Request) {
		return errFeatures
	}
	return nil
}

func readEntries(b []byte) (list []Entry, rest []byte, err error) {
	n, b, err := readNumber(b)
	if err != nil || n > maxEntries {
		return nil, nil, errFeatures
	}
	list = make([]Entry, 0, min(n, uint64(len(b))))
	var last uint64
	var value float32
	for range n {
		var step uint64
		if step, b, err = readNumber(b); err != nil {
			return nil, nil, err
		}
		last += step
		if step == 0 {
			if len(b) < 4 {
				return nil, nil, errFeatures
			}
			value = math.Float32frombits(binary.BigEndian.Uint32(b))
			if last, b, err = readNumber(b[4:]); err != nil {
				return nil, nil, err
			}
		}
		if last >= buckets || !(value > -100 && value < 100) {
			return nil, nil, errFeatures
		}
		list = append(list, Entry{uint32(last), value})
	}
	return list, b, nil
}

func readNumber(b []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > math.MaxUint32 {
		return 0, nil, errFeatures
	}
	return n, b[size:], nil
}
