package classify

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// magic is the beginning of a file of weights.
const magic = "CSTRIAGE"

// fileHeader is the header of a file of weights.
type fileHeader struct {
	Version int           `json:"version"`
	Buckets int           `json:"buckets"`
	Stride  int           `json:"stride"`
	Scale   Scale         `json:"scale"`
	Cuts    Cuts          `json:"cuts"`
	Parts   map[Head]part `json:"parts"`
}

func (m *Model) header() ([]byte, error) {
	return json.Marshal(fileHeader{
		Version: version, Buckets: buckets, Stride: m.stride, Scale: m.vocabulary.scale, Cuts: m.cuts, Parts: m.parts,
	})
}

// setDigest sets the digest, which is over the header and the uncompressed
// weights.
func (m *Model) setDigest() error {
	header, err := m.header()
	if err != nil {
		return err
	}
	m.digest = digestOf(header, m.table)
	return nil
}

func digestOf(header []byte, table []int8) string {
	h := sha256.New()
	_, _ = h.Write(header)
	chunk := make([]byte, 1<<16)
	for len(table) > 0 {
		n := min(len(chunk), len(table))
		for i, w := range table[:n] {
			chunk[i] = byte(w)
		}
		_, _ = h.Write(chunk[:n])
		table = table[n:]
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Write writes the file: the magic, the length of the header, the header in
// JSON, the digest, and the compressed weights, one output after another.
func (m *Model) Write(to io.Writer) error {
	header, err := m.header()
	if err != nil {
		return err
	}
	digest, err := hex.DecodeString(m.digest)
	if err != nil {
		return fmt.Errorf("write the model: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(magic)
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(header))))
	b.Write(header)
	b.Write(digest)
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return err
	}
	column := make([]byte, buckets)
	for o := range m.stride {
		for i := range column {
			column[i] = byte(m.table[i*m.stride+o])
		}
		if _, err := w.Write(column); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	_, err = to.Write(b.Bytes())
	return err
}

// Open reads a file of weights. It rejects a damaged one, and one for another
// version of features.
func Open(file []byte) (*Model, error) {
	h, header, rest, err := readHeader(file)
	if err != nil {
		return nil, fmt.Errorf("open the model: %w", err)
	}
	digest := hex.EncodeToString(rest[:sha256.Size])
	m := &Model{
		vocabulary: newVocabulary(h.Scale), digest: digest, stride: h.Stride, parts: h.Parts, cuts: h.Cuts,
		table: make([]int8, buckets*h.Stride),
	}
	in := flate.NewReader(bytes.NewReader(rest[sha256.Size:]))
	column := make([]byte, buckets)
	for o := range m.stride {
		if _, err := io.ReadFull(in, column); err != nil {
			return nil, fmt.Errorf("open the model: the weights are damaged: %w", err)
		}
		for i, b := range column {
			m.table[i*m.stride+o] = int8(b)
		}
	}
	if digestOf(header, m.table) != digest {
		return nil, errors.New("open the model: the digest does not match; train the model again")
	}
	return m, nil
}

// readHeader returns the header and the rest, which is at least a digest.
func readHeader(file []byte) (h fileHeader, header, rest []byte, err error) {
	rest, ok := bytes.CutPrefix(file, []byte(magic))
	if !ok || len(rest) < 4 {
		return h, nil, nil, errors.New("not a triage model file")
	}
	length := int64(binary.BigEndian.Uint32(rest))
	rest = rest[4:]
	if length+sha256.Size > int64(len(rest)) {
		return h, nil, nil, errors.New("the file is cut off")
	}
	header, rest = rest[:length], rest[length:]
	if err := json.Unmarshal(header, &h); err != nil {
		return h, nil, nil, fmt.Errorf("read the header: %w", err)
	}
	if h.Version != version || h.Buckets != buckets {
		return h, nil, nil, fmt.Errorf("the model has features of version %d, this program has version %d; train it again", h.Version, version)
	}
	if err := h.check(); err != nil {
		return h, nil, nil, err
	}
	return h, header, rest, nil
}

// check rejects a header that would make a prediction read outside the weights.
func (h fileHeader) check() error {
	if h.Stride < 1 || h.Stride > 64 {
		return errors.New("the header has an impossible number of outputs")
	}
	for _, head := range heads() {
		p, ok := h.Parts[head]
		n := head.outputs()
		if !ok || p.Offset < 0 || p.Offset+n > h.Stride || len(p.Bias) != n || !(p.Temperature > 0) {
			return fmt.Errorf("the header has no usable head %q", head)
		}
	}
	return nil
}
