-- permissions.json counts for every token of its user from now on (PERM-1).
INSERT INTO upgrade_notices (name, told_us) SELECT 'permission_files', NULL WHERE EXISTS (SELECT 1 FROM tokens);
