package faults

import "strings"

// Statements returns the SQL commands of PostgreSQL, the first words of its statements, by which
// scripts name requests. The list has one name for synonyms, the name in the server's command tag:
// COMMIT for END, BEGIN for START, ROLLBACK for ABORT.
func Statements() []string {
	return strings.Fields(`
		SELECT INSERT UPDATE DELETE MERGE VALUES TABLE WITH TRUNCATE COPY
		BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE SET RESET SHOW LOCK
		LISTEN NOTIFY UNLISTEN DO CALL EXPLAIN
		CREATE ALTER DROP COMMENT GRANT REVOKE REASSIGN SECURITY IMPORT
		PREPARE EXECUTE DEALLOCATE DECLARE FETCH MOVE CLOSE DISCARD
		ANALYZE VACUUM CLUSTER REINDEX REFRESH CHECKPOINT LOAD`)
}

// PostgresMessages returns the names of PostgreSQL requests that are not statements.
func PostgresMessages() []string {
	return strings.Fields(`
		STARTUP PASSWORD SSLREQUEST GSSENCREQUEST TERMINATE CANCEL
		BIND DESCRIBE SYNC FLUSH COPYDATA COPYFAIL FUNCTION EMPTY UNKNOWN`)
}
