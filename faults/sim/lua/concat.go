package lua

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// textOfNumber is the name of the function that converts the operands of a concatenation. No script
// can contain this name.
const textOfNumber = "\x00text"

// asText returns its argument, with a number converted to the text that Lua gives it. The operator
// .. of gopher-lua would write all digits of the number.
func asText(l *lua.LState) int {
	value := l.Get(1)
	if n, ok := value.(lua.LNumber); ok {
		value = lua.LString(formatNumber(n))
	}
	l.Push(value)
	return 1
}

// textOfNumbers wraps the operands of every .. in part of a syntax tree in a call of textOfNumber.
// Code that a script passes to loadstring is not converted.
func textOfNumbers(part reflect.Value) {
	switch part.Kind() {
	case reflect.Interface, reflect.Pointer:
		if part.IsNil() {
			return
		}
		textOfNumbers(part.Elem())
		if concat, ok := part.Interface().(*ast.StringConcatOpExpr); ok && part.Kind() == reflect.Pointer {
			concat.Lhs, concat.Rhs = textOf(concat.Lhs), textOf(concat.Rhs)
		}
	case reflect.Slice:
		for i := range part.Len() {
			textOfNumbers(part.Index(i))
		}
	case reflect.Struct:
		for i := range part.NumField() {
			if part.Type().Field(i).IsExported() {
				textOfNumbers(part.Field(i))
			}
		}
	}
}

func textOf(e ast.Expr) ast.Expr {
	switch e.(type) {
	case *ast.StringExpr, *ast.StringConcatOpExpr:
		return e
	}
	name := &ast.IdentExpr{Value: textOfNumber}
	call := &ast.FuncCallExpr{Func: name, Args: []ast.Expr{e}}
	for _, made := range []ast.PositionHolder{name, call} {
		made.SetLine(e.Line())
		made.SetLastLine(e.LastLine())
	}
	return call
}
