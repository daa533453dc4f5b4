package data

import (
	"os"
	"sync"
)

// temporaries are the files and folders that are on their way, under names that no
// reader takes for the finished ones.
var temporaries = struct {
	sync.Mutex
	paths map[string]bool
}{paths: map[string]bool{}}

// Temporary notes a file or folder that whoever makes it will rename or remove, and
// then forgets with the function returned.
func Temporary(path string) (forget func()) {
	temporaries.Lock()
	defer temporaries.Unlock()
	temporaries.paths[path] = true
	return func() {
		temporaries.Lock()
		defer temporaries.Unlock()
		delete(temporaries.paths, path)
	}
}

// RemoveTemporaries removes what is noted: the last act of a program that cannot
// wait for those who make it. Nothing more can be noted or forgotten after it.
func RemoveTemporaries() {
	temporaries.Lock() // for good: nobody may finish what is gone
	for path := range temporaries.paths {
		os.RemoveAll(path)
	}
}
