-- The few files with which build systems and package managers take a firmware bundle as it is: one row a system.
local one_of = require "gen.schema.one_of"

local wrap = {}

wrap.list = {
    {
        name = "zephyr",
        files = {
            { "zephyr/module.yml", "zephyr_module.yml" },
            { "zephyr/Kconfig", "zephyr_kconfig" },
            { "zephyr/CMakeLists.txt", "zephyr_cmake.txt" },
        },
    },
    {
        name = "esp-idf",
        files = { { "CMakeLists.txt", "esp_idf_cmake.txt" }, { "idf_component.yml", "idf_component.yml" } },
    },
    { name = "platformio", files = { { "library.json", "library.json" } } },
    { name = "arduino", files = { { "library.properties", "library.properties" }, { "src/$model.h", "arduino.h" } } },
    { name = "cmsis-pack", files = { { "lookupc.$model.pdsc", "pack.pdsc" } } },
}

wrap.names = {}
for i, row in ipairs(wrap.list) do
    wrap.names[i] = row.name
end

-- The names in a list such as "zephyr,arduino", in the order of the table; raises one line for another.
function wrap.select(text)
    local wanted, list = {}, {}
    for _, name in ipairs(one_of.words("--wrap", text, wrap.names)) do
        wanted[name] = true
    end
    for _, name in ipairs(wrap.names) do
        if wanted[name] then list[#list + 1] = name end
    end
    return list
end

-- The files of the systems `names` for the model `model`: { {name, template} }.
function wrap.files(names, model)
    local list = {}
    for _, name in ipairs(names) do
        for _, row in ipairs(wrap.list) do
            for _, file in ipairs(row.name == name and row.files or {}) do
                list[#list + 1] = { name = file[1]:gsub("%$model", model), template = "templates/wrap/" .. file[2] }
            end
        end
    end
    return list
end

return wrap
