package faults

import "strings"

// Statements returns the commands of SQL that PostgreSQL has, by which scripts name requests to it: the first words of its statements. Of
// two that mean the same it has the one by which the server answers: COMMIT and not END, BEGIN and not START, ROLLBACK and not ABORT.
func Statements() []string {
	return strings.Fields(`
		SELECT INSERT UPDATE DELETE MERGE VALUES TABLE WITH TRUNCATE COPY
		BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE SET RESET SHOW LOCK
		LISTEN NOTIFY UNLISTEN DO CALL EXPLAIN
		CREATE ALTER DROP COMMENT GRANT REVOKE REASSIGN SECURITY IMPORT
		PREPARE EXECUTE DEALLOCATE DECLARE FETCH MOVE CLOSE DISCARD
		ANALYZE VACUUM CLUSTER REINDEX REFRESH CHECKPOINT LOAD`)
}

// PostgresMessages returns the names of requests to PostgreSQL that are no statements.
func PostgresMessages() []string {
	return strings.Fields(`
		STARTUP PASSWORD SSLREQUEST GSSENCREQUEST TERMINATE CANCEL
		BIND DESCRIBE SYNC FLUSH COPYDATA COPYFAIL FUNCTION EMPTY UNKNOWN`)
}
