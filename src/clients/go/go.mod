module vodbox/client

go 1.19
