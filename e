assay: cannot open 'c.yaml': No such file or directory
