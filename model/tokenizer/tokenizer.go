// Package tokenizer is the byte-level BPE of the Qwen2, Qwen3 and Qwen3.5
// models. It reads and writes Hugging Face tokenizer.json files, gives the ids
// that the tokenizers library gives, and can train a small vocabulary.
//
// Text becomes ids in five steps, those that a Qwen tokenizer.json prescribes, one
// file each:
//
//  1. added tokens such as <|im_end|> are cut out of the raw text (added.go);
//  2. what lies between is brought to Unicode normal form C (normalize.go);
//  3. and split into words, numbers, punctuation and space (split.go);
//  4. each piece is read as bytes, every byte one symbol (alphabet.go);
//  5. and neighbouring symbols merge, lowest rank first (bpe.go).
//
// Ids are what the file says they are: nothing is derived from byte values or
// from the order of the merges, and a vocabulary may hold entries that no merge
// reaches; they decode and are never produced.
package tokenizer

// Tokenizer turns text into token ids and back. It is immutable and safe for
// concurrent use.
type Tokenizer struct {
	pattern pattern
	// tokens and bytes are indexed by id: the token as the file spells it, in
	// the byte alphabet, and the bytes that it stands for. Both are empty for
	// an id without a token.
	tokens, bytes []string
	special       []bool           // by id, of added tokens that Decode may leave out
	ids           map[string]int32 // token as spelt to id
	byteIDs       [256]int32       // the token of each single byte
	table         mergeTable
	// byteRanks holds the ranks of pairs of single bytes, with which every piece
	// begins.
	byteRanks  [256][256]int32
	wholeFirst bool // ignore_merges: a piece that is a token needs no merging
	added      addedTokens
	scratches  scratches
}

// Encode appends the ids of text to dst and returns the extended slice. Added
// tokens written out in text become their ids, so text must be trusted; use
// EncodeText for what a user or a policy wrote. No begin or end token is added.
// Nothing is allocated when dst has room and text is seen at a glance to be in
// normal form C, as ASCII and most other text is.
func (k *Tokenizer) Encode(text string, dst []int32) []int32 {
	s := k.scratches.borrow()
	for {
		start, end, id := k.added.find(text)
		if start < 0 {
			break
		}
		dst = append(k.appendText(dst, text[:start], s), id)
		text = text[end:]
	}
	dst = k.appendText(dst, text, s)
	k.scratches.giveBack(s)
	return dst
}

// EncodeText is Encode without added tokens: "<|im_end|>" in text is spelt out
// in ordinary tokens, so that untrusted text cannot forge control tokens.
func (k *Tokenizer) EncodeText(text string, dst []int32) []int32 {
	s := k.scratches.borrow()
	dst = k.appendText(dst, text, s)
	k.scratches.giveBack(s)
	return dst
}

// appendText normalises and splits text and appends the ids of its pieces.
func (k *Tokenizer) appendText(dst []int32, text string, s *scratch) []int32 {
	text = normalize(text)
	for len(text) > 0 {
		n := k.pattern.next(text)
		if n > keyBytes {
			dst = append(dst, k.encodePiece(text[:n], s)...)
			text = text[n:]
			continue
		}
		key := keyOf(text, n)
		set := s.cache.set(key)
		switch {
		case set[0].holds(key, n):
			dst = set[0].appendIDs(dst)
		case set[1].holds(key, n):
			set[0], set[1] = set[1], set[0]
			dst = set[0].appendIDs(dst)
		default:
			ids := k.encodePiece(text[:n], s)
			set.keep(key, n, ids)
			dst = append(dst, ids...)
		}
		text = text[n:]
	}
	return dst
}

// encodePiece returns the ids of one piece, in s until the next call.
func (k *Tokenizer) encodePiece(piece string, s *scratch) []int32 {
	s.symbols = s.symbols[:0]
	if k.wholeFirst {
		if id, ok := k.ids[spell(piece)]; ok {
			s.symbols = append(s.symbols, id)
			return s.symbols
		}
	}
	for i := range len(piece) {
		s.symbols = append(s.symbols, k.byteIDs[piece[i]])
	}
	if len(piece) >= longPiece {
		return k.table.mergeLong(s.symbols, s)
	}
	s.ranks = s.ranks[:0]
	for i := 1; i < len(piece); i++ {
		s.ranks = append(s.ranks, k.byteRanks[piece[i-1]][piece[i]])
	}
	return k.table.merge(s.symbols, s.ranks)
}

// Bytes returns the bytes that id stands for, or "" when there is no such id. A
// token may hold part of a character.
func (k *Tokenizer) Bytes(id int32) string {
	if id < 0 || int(id) >= len(k.bytes) {
		return ""
	}
	return k.bytes[id]
}

// ID returns the id of a token: an added token's text, or a vocabulary entry as
// tokenizer.json spells it ("Ġname" for " name").
func (k *Tokenizer) ID(token string) (id int32, ok bool) {
	id, ok = k.ids[token]
	return id, ok
}

// Size returns one more than the highest id. A model needs at least so many
// embedding rows; released checkpoints have more.
func (k *Tokenizer) Size() int { return len(k.tokens) }
