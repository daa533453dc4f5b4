package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	text, err := ReadText(index)
	if errors.Is(err, fs.ErrNotExist) {
		return openSingle(dir)
	}
	if err != nil {
		return nil, err
	}
	shards, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not an index of weight files: %w; get the file again", index, err)
	}
	folder := &Folder{files: map[string]*File{}, shards: shards}
	if err := folder.openShards(dir, index); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// maxTextBytes bounds a text file of a model folder. The largest, a tokenizer, has
// some ten million bytes.
const maxTextBytes = 256 << 20

// ReadText reads a text file of a model folder. What is no regular file, or too large
// for a text, is refused rather than waited for.
func ReadText(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTextBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxTextBytes {
		return nil, fmt.Errorf("%s: more than %d MiB: not the text file that it should be; get it again", path, maxTextBytes>>20)
	}
	return text, nil
}

// parseIndex returns the weight_map of an index: the file of each tensor.
func parseIndex(text []byte) (map[string]string, error) {
	shards := map[string]string{}
	dec := json.NewDecoder(bytes.NewReader(text))
	err := parseObject(dec, func(key string) error {
		if key != "weight_map" {
			return dec.Decode(new(json.RawMessage))
		}
		return parseObject(dec, func(name string) error {
			var shard string
			err := dec.Decode(&shard)
			shards[name] = shard
			return err
		})
	})
	if err == nil && len(shards) == 0 {
		err = errors.New("weight_map: missing or empty")
	}
	return shards, err
}

func openSingle(dir string) (*Folder, error) {
	file, err := Open(filepath.Join(dir, SingleName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: neither %s nor %s: not a folder of safetensors weights: name one, or save a pytorch_model.bin as safetensors with transformers first", dir, IndexName, SingleName)
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
