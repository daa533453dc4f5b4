package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// cubinFile is a cubin on disk: NAME.ARCH.KEY.cubin, which tools such as cuobjdump read,
// and the same with .json, which tells what it is and the hash of its bytes. The second
// is written last, and a pair whose hash does not agree is as good as none. Both come
// by renaming, so that readers and other writers never see half a file; two writers of
// one key write the same bytes.
type cubinFile struct{ folder, key, name, arch string }

// cubinRecord is the content of the .json file.
type cubinRecord struct {
	Key     string      `json:"key"`
	SHA256  string      `json:"sha256"`
	Origin  string      `json:"origin"`
	Kernels []Resources `json:"kernels"`
	Log     string      `json:"log"`
}

func (f cubinFile) path() string {
	name := strings.ReplaceAll(strings.TrimSuffix(f.name, ".cu"), "/", ".")
	return filepath.Join(f.folder, fmt.Sprintf("%s.%s.%s.cubin", name, f.arch, f.key[:16]))
}

func (f cubinFile) recordPath() string { return f.path()[:len(f.path())-len("cubin")] + "json" }

// read returns the cubin, fs.ErrNotExist if there is none, or what is wrong with it.
func (f cubinFile) read() (*Cubin, error) {
	text, err := os.ReadFile(f.recordPath())
	if err != nil {
		return nil, err
	}
	var record cubinRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, fmt.Errorf("%s: %w; delete it", f.recordPath(), err)
	}
	if record.Key != f.key {
		return nil, fmt.Errorf("%s is of another text: %w", f.path(), fs.ErrNotExist)
	}
	image, err := os.ReadFile(f.path())
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(image); record.SHA256 != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%s is damaged: delete it", f.path())
	}
	return &Cubin{Name: f.name, Arch: f.arch, Image: image, Kernels: record.Kernels, Log: record.Log, Origin: f.path()}, nil
}

func (f cubinFile) write(c *Cubin) error {
	sum := sha256.Sum256(c.Image)
	record := cubinRecord{Key: f.key, SHA256: hex.EncodeToString(sum[:]), Origin: c.Origin, Kernels: c.Kernels, Log: c.Log}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.folder, 0o755); err != nil {
		return err
	}
	if err := replaceFile(f.path(), c.Image); err != nil {
		return err
	}
	return replaceFile(f.recordPath(), append(text, '\n'))
}

// replaceFile writes a file beside, reads it back, and renames it.
func replaceFile(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		var back []byte
		if back, err = os.ReadFile(temporary.Name()); err == nil && !bytes.Equal(back, content) {
			err = fmt.Errorf("%s: what was written reads back differently: check the disk", path)
		}
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
}
