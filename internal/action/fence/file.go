package fence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// readFile returns the memory of the last process that wrote a state file; nothing if
// there is no file.
func readFile(name string) (m memory, err error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("read state file: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("read state file %s: %w", name, err)
	}
	return m, nil
}

// writeFile replaces a state file. A process that is killed meanwhile leaves the file as
// it was.
func writeFile(name string, m memory) (err error) {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write state file: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("write state file: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the cause is on its way up
		}
	}()
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write state file: %w", err)
	}
	return nil
}
