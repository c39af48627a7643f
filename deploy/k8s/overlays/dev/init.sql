-- Makes the logins: the roles that the migration would make, so that the logins
-- can be made before it, and one login for each process. It runs once, in an
-- empty database, as a superuser.
CREATE ROLE countersign_owner NOLOGIN;
CREATE ROLE countersign_api NOLOGIN;
CREATE ROLE countersign_worker NOLOGIN;
CREATE ROLE countersign_triage NOLOGIN;
CREATE ROLE cs_migrate LOGIN PASSWORD 'dev-only' IN ROLE countersign_owner, countersign_api, countersign_worker, countersign_triage;
CREATE ROLE cs_api LOGIN PASSWORD 'dev-only' IN ROLE countersign_api;
CREATE ROLE cs_worker LOGIN PASSWORD 'dev-only' IN ROLE countersign_worker, pg_monitor;
CREATE ROLE cs_triage LOGIN PASSWORD 'dev-only' IN ROLE countersign_triage;
ALTER DATABASE countersign OWNER TO cs_migrate;
