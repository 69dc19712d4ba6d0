-- Plans of a model under another name, which symbols, macros and files begin with: its blobs stay the model's own.

-- What stands for family.build: gives plans of a model called `own` the name `new`.
return function(family, own, new)
    return function(m, isas, options, wanted)
        m.name = own
        local digest = family.build(m, isas, options).digest
        m.name = new
        local p = family.build(m, isas, options, wanted)
        p.digest, p.renamed = digest, own
        return p
    end
end
