package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// SingleName and IndexName are the file names of the Hugging Face layout.
const (
	SingleName = "model.safetensors"
	IndexName  = "model.safetensors.index.json"
)

// Folder is the weights of a model folder: one file, or shards with an index.
// Tensors taken from it are valid until Close.
type Folder struct {
	files  map[string]*File // by file name
	shards map[string]string
}

// OpenFolder opens the weights in dir. With an index, the index alone says which
// file holds a tensor; without one there must be a file model.safetensors.
func OpenFolder(dir string) (*Folder, error) {
	index := filepath.Join(dir, IndexName)
	text, err := os.ReadFile(index)
	if errors.Is(err, fs.ErrNotExist) {
		return openSingle(dir)
	}
	if err != nil {
		return nil, err
	}
	var content struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("%s: not an index of weight files: %w; get the file again", index, err)
	}
	if len(content.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: weight_map: missing or empty; get the file again", index)
	}
	folder := &Folder{files: map[string]*File{}, shards: content.WeightMap}
	if err := folder.openShards(dir, index); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

func openSingle(dir string) (*Folder, error) {
	file, err := Open(filepath.Join(dir, SingleName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: neither %s nor %s: not a folder of safetensors weights; name one", dir, IndexName, SingleName)
	}
	if err != nil {
		return nil, err
	}
	folder := &Folder{files: map[string]*File{SingleName: file}, shards: map[string]string{}}
	for _, name := range file.Names() {
		folder.shards[name] = SingleName
	}
	return folder, nil
}

// openShards opens each file that the index names and checks that it holds the
// tensors it should.
func (d *Folder) openShards(dir, index string) error {
	for _, name := range d.Names() {
		shard := d.shards[name]
		if d.files[shard] == nil {
			if shard != filepath.Base(shard) || shard == "." || shard == ".." {
				return fmt.Errorf("%s: weight_map: %q is not a plain file name", index, shard)
			}
			file, err := Open(filepath.Join(dir, shard))
			if err != nil {
				return fmt.Errorf("%s: tensor %q: %w", index, name, err)
			}
			d.files[shard] = file
		}
		if _, err := d.files[shard].Tensor(name); err != nil {
			return fmt.Errorf("%s: %w", index, err)
		}
	}
	return nil
}

// Names returns the names of all tensors, sorted.
func (d *Folder) Names() []string { return slices.Sorted(maps.Keys(d.shards)) }

// Tensor returns the tensor called name.
func (d *Folder) Tensor(name string) (Tensor, error) {
	file := d.files[d.shards[name]]
	if file == nil {
		return Tensor{}, fmt.Errorf("no tensor %q", name)
	}
	return file.Tensor(name)
}

// Close closes all files.
func (d *Folder) Close() error {
	var errs []error
	for _, file := range d.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
