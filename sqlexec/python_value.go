package sqlexec

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// The official evaluators are Python programs: what they call equal is Python's
// equality of int, float, str, bytes and None, and one of their checks sorts by
// printed form. Both are defined here.

// Equal reports whether Python finds two values equal: 1 and 1.0 are, "1" is not.
func Equal(a, b Value) bool {
	var x, y [32]byte
	return string(appendKey(x[:0], a)) == string(appendKey(y[:0], b))
}

// appendKey appends a text that two values share exactly when Python finds them
// equal: numbers by value, so 1 equals 1.0, everything else by kind and content.
func appendKey(key []byte, v Value) []byte {
	switch v := v.(type) {
	case nil:
		return append(key, 'n')
	case int64:
		return binary.LittleEndian.AppendUint64(append(key, 'i'), uint64(v))
	case float64:
		if i, ok := exactInt(v); ok {
			return binary.LittleEndian.AppendUint64(append(key, 'i'), uint64(i))
		}
		return binary.LittleEndian.AppendUint64(append(key, 'f'), math.Float64bits(v))
	case string:
		key = binary.AppendUvarint(append(key, 's'), uint64(len(v)))
		return append(key, v...)
	case []byte:
		key = binary.AppendUvarint(append(key, 'b'), uint64(len(v)))
		return append(key, v...)
	}
	panic("sqlexec: a cell that is not a Value")
}

func appendRowKey(key []byte, row []Value) []byte {
	key = binary.AppendUvarint(key, uint64(len(row)))
	for _, v := range row {
		key = appendKey(key, v)
	}
	return key
}

// exactInt returns f as an int64 where that loses nothing.
func exactInt(f float64) (int64, bool) {
	if f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// pythonPrint is str(v) + str(type(v)).
func pythonPrint(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None<class 'NoneType'>"
	case int64:
		return strconv.FormatInt(v, 10) + "<class 'int'>"
	case float64:
		return pythonFloat(v) + "<class 'float'>"
	case string:
		return v + "<class 'str'>"
	case []byte:
		return pythonBytes(v) + "<class 'bytes'>"
	}
	panic("sqlexec: a cell that is not a Value")
}

// pythonFloat is repr(f): the shortest digits that read back as f, in exponent
// form below 1e-4 and from 1e16 on.
func pythonFloat(f float64) string {
	if math.IsInf(f, 0) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// pythonBytes is repr(b).
func pythonBytes(b []byte) string {
	quote := byte('\'')
	if strings.Contains(string(b), "'") && !strings.Contains(string(b), `"`) {
		quote = '"'
	}
	var out strings.Builder
	out.WriteString("b" + string(quote))
	for _, c := range b {
		switch {
		case c == quote || c == '\\':
			out.WriteString(`\` + string(rune(c)))
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < ' ' || c >= 0x7f:
			const hex = "0123456789abcdef"
			out.WriteString(`\x` + string(hex[c>>4]) + string(hex[c&15]))
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte(quote)
	return out.String()
}
