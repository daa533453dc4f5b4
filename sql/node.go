// Package sql reads one SQL statement: it cuts the text into clauses, parses it
// into a neutral syntax tree with byte spans, brings it to a canonical form,
// resolves names against a schema, measures tree edit distance, and prints
// trees back as SQL.
//
// Two views of a statement live side by side. The token view (Clauses) works on
// any text, truncated or unparsable, because a policy's output is often both.
// The tree view (Parse) needs a statement that SQLite's grammar accepts.
package sql

// Node is one node of the neutral syntax tree. The tree is deliberately plain,
// a labelled ordered tree, because everything above it (tree edit distance,
// mutation, reward propagation) walks all kinds of nodes alike. It is the same
// whatever grammar read the text.
type Node struct {
	Kind Kind
	// Value tells two nodes of one kind apart: a column, table, alias or
	// function name as written without quotes, an operator in upper case, a
	// literal's text (strings unquoted), a join kind. Empty where the kind
	// says all.
	Value string
	// Qualifier is the table name or alias before a column or star, the
	// database before a table, the inherited window before a window
	// definition, as written without quotes. Empty when there is none.
	Qualifier string
	// DoubleQuoted marks an unqualified Column written "in double quotes":
	// SQLite reads it as a string when no such column is in scope.
	DoubleQuoted bool
	// Start and End delimit the node's bytes in the text it was parsed from.
	// Parentheses around an expression are outside its span.
	Start, End int
	Children   []*Node
	Parent     *Node
	// Origin is, in a canonical tree, the parsed node this one stands for;
	// nil in a parsed tree.
	Origin *Node
}

// Kind is the syntactic category of a Node.
type Kind string

// Blocks. A block owns clause nodes and belongs to no clause itself.
const (
	// Select is one SELECT block. Its children are clause nodes in textual
	// order, each at most once: With, Projection, From, Where, GroupBy,
	// Having, Window, OrderBy, Limit.
	Select Kind = "select"
	// Compound is a statement with set operations, or VALUES after WITH.
	// Children: With (if any), the first operand (Select or Values), one
	// SetOp for each further operand, OrderBy, Limit.
	Compound Kind = "compound"
	// Values is VALUES (...), (...); its children are Row nodes.
	Values Kind = "values"
)

// Clauses.
const (
	With       Kind = "with"       // children: CTE; Value "RECURSIVE" or ""
	Projection Kind = "projection" // children: Item; Value "DISTINCT", "ALL" or ""
	From       Kind = "from"       // children: the first source, then one Join for each further one
	Where      Kind = "where"      // one child: the condition
	GroupBy    Kind = "group-by"   // children: keys
	Having     Kind = "having"     // one child
	Window     Kind = "window"     // children: WindowDef
	OrderBy    Kind = "order-by"   // children: OrderTerm
	Limit      Kind = "limit"      // children: count, then the offset wrapped in Offset
	SetOp      Kind = "set-op"     // Value "UNION", "UNION ALL", "INTERSECT", "EXCEPT"; one child, the operand
)

// Parts of clauses.
const (
	CTE           Kind = "cte"            // Value name; children: column names as Name, then the block
	Item          Kind = "item"           // one projection; children: the expression, then Alias if any
	Alias         Kind = "alias"          // Value name
	Name          Kind = "name"           // a bare identifier: CTE column, USING column
	Table         Kind = "table"          // Value table name, Qualifier database; child Alias if any
	TableFunction Kind = "table-function" // Value function name; children: arguments, Alias
	Derived       Kind = "derived"        // sub-query in FROM; children: the block, Alias
	JoinGroup     Kind = "join-group"     // parenthesised join in FROM; children as From
	Join          Kind = "join"           // Value ",", "JOIN", "LEFT JOIN", "NATURAL JOIN", ...; children: the source, then On or Using
	On            Kind = "on"             // one child
	Using         Kind = "using"          // children: Name
	OrderTerm     Kind = "order-term"     // Value "ASC", "DESC" (ASC when unwritten), plus " NULLS FIRST|LAST"; one child
	Offset        Kind = "offset"         // one child
	WindowDef     Kind = "window-def"     // Value name; children: PartitionBy, OrderBy, Frame
	PartitionBy   Kind = "partition-by"   // children: expressions
	Frame         Kind = "frame"          // Value: the frame's text in upper case, single spaces
)

// Expressions.
const (
	Column    Kind = "column"    // Value column, Qualifier table or alias; child Name of the database where written
	Star      Kind = "star"      // Qualifier table or alias
	Number    Kind = "number"    // Value as written
	String    Kind = "string"    // Value unquoted
	Blob      Kind = "blob"      // Value as written
	Null      Kind = "null"      //
	Constant  Kind = "constant"  // TRUE, FALSE, CURRENT_DATE, ...
	Param     Kind = "param"     // bind parameter, Value as written
	Compare   Kind = "compare"   // "=", "!=", "<", "<=", ">", ">=" ("==" and "<>" are written so); two children
	And       Kind = "and"       // two or more children: chains are flattened
	Or        Kind = "or"        // likewise
	Not       Kind = "not"       // one child
	Is        Kind = "is"        // "IS", "IS NOT", "IS DISTINCT FROM", ...; two children
	NullTest  Kind = "null-test" // "IS NULL", "IS NOT NULL" (ISNULL and NOTNULL too); one child
	Like      Kind = "like"      // "LIKE", "NOT LIKE", "GLOB", ...; children: value, pattern, escape if any
	Between   Kind = "between"   // "BETWEEN", "NOT BETWEEN"; three children
	In        Kind = "in"        // "IN", "NOT IN"; children: value, then List, Subquery or Table
	Exists    Kind = "exists"    // child: the block (NOT EXISTS is Not over Exists)
	Subquery  Kind = "subquery"  // scalar sub-query or right side of IN; child: the block
	List      Kind = "list"      // IN list
	Row       Kind = "row"       // row value, VALUES row
	Binary    Kind = "binary"    // "+", "-", "*", "/", "%", "||", "&", "|", "<<", ">>", "->", "->>"; two children
	Unary     Kind = "unary"     // "-", "+", "~"; one child
	Function  Kind = "function"  // Value lower-case name; children: arguments, then the marks Distinct, OrderBy, Filter, Over
	Aggregate Kind = "aggregate" // a Function that aggregates: count, sum, avg, min and max of one argument, total, group_concat
	Distinct  Kind = "distinct"  // mark: the call's argument is DISTINCT
	Filter    Kind = "filter"    // FILTER (WHERE child)
	Over      Kind = "over"      // OVER; Value window name; children: PartitionBy, OrderBy, Frame
	Case      Kind = "case"      // children: operand if any, When..., Else if any
	When      Kind = "when"      // children: condition, result
	Else      Kind = "else"      // one child
	Cast      Kind = "cast"      // Value type name in upper case; one child
	Collate   Kind = "collate"   // Value collation in upper case; one child
)
