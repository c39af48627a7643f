package client

import "io"

// ReadIDs reads a stream of events and returns the ids and the data.
func ReadIDs(r io.Reader) (ids []string, data [][]byte, err error) {
	err = readEvents(r, func() {}, func(m message) error {
		ids, data = append(ids, m.id), append(data, m.data)
		return nil
	})
	return ids, data, err
}
